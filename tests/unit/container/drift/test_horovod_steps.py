"""What the guard learns where a script asks Horovod for an optimizer; the frameworks themselves are tests/interop's."""

import sys
from types import SimpleNamespace

import pytest
from estimator_container.drift import horovod_steps, horovod_world
from estimator_container.drift.training import Guard


class Optimizer:
    """As Horovod makes one, each of a class of its own."""

    def __init__(self):
        self.local = []

    def register_local_var(self, variable):
        self.local.append(variable)


@pytest.fixture
def guard(tmp_path):
    return Guard(str(tmp_path / "host"), 0, 2, only_warns=False)


def created(guard, version="3.15.1"):
    """What Horovod's function gives after it has been hooked."""
    keras = SimpleNamespace(**({"__version__": version} if version else {}))
    stock = lambda keras, optimizer, name: type("SGD", (Optimizer,), {})()  # noqa: E731
    implementation = SimpleNamespace(create_distributed_optimizer=stock)
    horovod_steps.watch_keras(implementation, guard)
    return implementation.create_distributed_optimizer(keras, optimizer="sgd", name=None)


class Variable:
    pass


def test_a_variable_that_is_registered_as_local_is_its_ranks_own(guard):
    own, other = Variable(), Variable()
    optimizer = created(guard)
    optimizer.register_local_var(own)
    assert optimizer.local == [own]
    assert (horovod_world.is_own(own), horovod_world.is_own(other)) == (True, False)


@pytest.mark.parametrize(("version", "unseen"), [("2.15.0", True), (None, True), ("3.15.1", False)])
def test_what_averages_on_keras_2_is_known_to_be_there(guard, version, unseen):
    created(guard, version)
    assert guard.averages_unseen == unseen


@pytest.mark.parametrize(("number", "ranks"), [(0, ()), (3, (0, 2))])
def test_the_process_set_of_all_ranks_needs_no_list_of_them(number, ranks):
    assert horovod_world.ranks_of(SimpleNamespace(process_set_id=number, ranks=[0, 2])) == ranks


class Basics:
    """Horovod's library in one process."""

    def __init__(self, size, sets=1, initialised=True):
        self.size = lambda: size
        self.is_initialized = lambda: initialised
        self._get_process_set_ids_and_ranks = lambda: {number: [] for number in range(sets)}


@pytest.mark.parametrize(
    ("basics", "for_all", "for_some"),
    [
        (Basics(4), True, False),
        (Basics(4, sets=2), False, False),
        (Basics(2), False, True),
        (Basics(4, initialised=False), False, False),
    ],
    ids=["all ranks", "process sets", "fewer ranks than there are", "not initialised"],
)
def test_whether_horovod_is_for_all_ranks(monkeypatch, basics, for_all, for_some):
    monkeypatch.setitem(sys.modules, "horovod.torch.mpi_ops", SimpleNamespace(_basics=basics))
    assert (horovod_world.is_for_all(4), horovod_world.is_for_some(4)) == (for_all, for_some)
