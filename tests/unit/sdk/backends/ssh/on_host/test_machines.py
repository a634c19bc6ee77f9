"""Which machines of a pool a job has, and what is said of those that cannot have a host."""

from __future__ import annotations

import contextlib
import signal
import socket
from types import SimpleNamespace

import pytest
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.loop import Loop

from estimator_sdk import Estimator
from estimator_sdk.backends.ssh.on_host import machines as on_host
from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.machines import PoolMachine, PoolMachines
from estimator_sdk.backends.supervised.supervisor.hosts import NotStarted
from estimator_sdk.values.home import JobFolder

NAMES = ("host-1", "host-2", "host-3")
PLAN = SimpleNamespace(hosts=("algo-1", "algo-2"))


@contextlib.contextmanager
def pool(*names: str):
    """For a job with two hosts; none has come, and the supervisor is on another machine."""
    door = socket.create_server(("127.0.0.1", 0))
    made = PoolMachines(Loop(), [PoolMachine(name, name) for name in names], b"secret", door, "the client")
    yield made
    made._mesh.close()
    signal.set_wakeup_fd(-1)


@pytest.fixture
def machines():
    with pool(*NAMES) as made:
        yield made


@pytest.fixture
def four_machines():
    with pool(*NAMES, "host-4") as made:
        yield made


def come(machines, *names: str) -> None:
    for name in names:
        machines.on_message(name, [words.ABOUT, "10.0.0.1", "", ""])


def cannot(machines, name: str) -> None:
    machines.on_message(name, [words.UNFIT, "its disk is full"])


def enter(machines) -> None:
    machines.enter(PLAN, None, lambda: False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_first", [True, False])
def test_one_of_three_that_cannot_have_a_host_is_not_needed(machines, name, is_first):
    """Whichever it is, and whether that is heard before the others come or after."""
    if is_first:
        cannot(machines, name)
    come(machines, *(each for each in NAMES if each != name))
    machines._loop.after(0.05, lambda: None if is_first else cannot(machines, name))
    enter(machines)
    assert {*NAMES} - {name} <= {*machines.kept}
    assert machines.too_few(2) == ""
    cannot(machines, name)
    assert machines.too_few(3).startswith(f"too few machines are left, 2 of 3; {name} cannot have a host: its disk")


def test_the_job_waits_for_the_machine_that_takes_the_place_of_one(machines):
    come(machines, "host-1")
    machines._loop.after(0.05, lambda: cannot(machines, "host-2"))
    machines._loop.after(0.1, lambda: come(machines, "host-3"))
    enter(machines)
    assert {*machines.kept} == {"host-1", "host-3"}


def test_both_reasons_are_told_where_one_cannot_have_a_host_and_the_spare_one_does_not_come(machines, monkeypatch):
    monkeypatch.setattr(on_host, "JOIN_SECONDS", 0.1)
    come(machines, "host-1")
    cannot(machines, "host-2")
    with pytest.raises(NotStarted, match="^host-2 cannot have a host: its disk is full; host-3 did not connect to"):
        enter(machines)


def test_a_spare_machine_takes_the_place_of_one_that_does_not_come(machines, monkeypatch):
    monkeypatch.setattr(on_host, "JOIN_SECONDS", 0.1)
    come(machines, "host-1", "host-3")
    enter(machines)
    assert machines.too_few(2) == ""
    assert "2 of 3; host-2 cannot have a host: it did not connect to the job's supervisor" in machines.too_few(3)
    come(machines, "host-2")  # after all
    assert machines.free({"host-1", "host-3"}, for_own=False) is None


def test_a_job_can_do_without_any_that_do_not_come_while_others_do(four_machines, monkeypatch):
    monkeypatch.setattr(on_host, "JOIN_SECONDS", 0.1)
    come(four_machines, "host-1", "host-4")
    enter(four_machines)
    assert four_machines.too_few(2) == ""


def test_where_too_few_are_left_each_is_named_with_its_reason(machines):
    cannot(machines, "host-1")
    machines._loop.after(0.05, lambda: cannot(machines, "host-3"))
    with pytest.raises(NotStarted) as said:
        come(machines, "host-2")
        enter(machines)
    reason = "cannot have a host: its disk is full"
    assert str(said.value) == f"host-1 {reason}; host-3 {reason}"


def test_a_job_that_loses_a_machine_while_it_waits_for_room_waits_for_room_with_another(tmp_path, monkeypatch):
    """Or its hosts would begin on machines that it has no slots of."""
    (tmp_path / "train.py").touch()
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), hosts=[*NAMES], instance_count=2, queue=True)
    plan, folder = estimator.plan(job_name="digits"), JobFolder.for_job("digits")
    folder.path.mkdir(parents=True)
    door = socket.create_server(("127.0.0.1", 0))
    made = PoolMachines(Loop(), [PoolMachine(name, name) for name in NAMES], b"secret", door, None)
    full, asked = {"host-1"}, []

    def answer(machine: str, kind: str, *fields: str) -> None:
        asked.append((machine, kind))
        states = {words.CLAIM: words.FREE, words.TAKE: words.HELD, words.GIVE_BACK: words.FREE}
        state = words.FULL if machine in full else states[kind]
        made._loop.after(0.0, lambda: made.on_message(machine, [words.ROOM, state, "another has 1"]))

    monkeypatch.setattr(made, "send", answer)
    come(made, *NAMES)

    def lose() -> None:
        assert (folder.path / "waiting").exists()
        made.on_lost("host-2", Loss.CLOSED)
        made._loop.after(0.05, leave)

    def leave() -> None:
        full.clear()
        made.on_message("host-1", [words.ROOM, words.FREE, ""])

    made._loop.after(0.05, lose)
    log = folder.host("algo-1") / "output/logs"
    log.mkdir(parents=True)
    made.enter(plan, folder, lambda: False)
    assert [machine for machine, kind in asked if kind == words.TAKE] == ["host-1", "host-3"]
    assert not (folder.path / "waiting").exists()
    said = b"host-2 is not connected any more; the job goes on without it"
    assert (log / "frames").read_bytes().count(said) == 1
    made._mesh.close()
    signal.set_wakeup_fd(-1)


def test_one_that_was_lost_is_named_beside_one_that_cannot_have_a_host(machines):
    come(machines, "host-1")
    cannot(machines, "host-3")
    machines._loop.after(0.05, lambda: machines.on_lost("host-2", Loss.CLOSED))
    with pytest.raises(NotStarted, match="^host-3 cannot have a host: its disk is full; host-2 is not connected"):
        enter(machines)
    assert machines.too_few(2) == "too few machines are left, 1 of 3 without host-2, host-3; start the job again"
