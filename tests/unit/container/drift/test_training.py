"""When a rank sends its weights, under which name, and that nothing that goes wrong there is the script's concern."""

import os
import socket

import pytest
from estimator_container.drift.training import VARIABLES, Guard, Weight
from estimator_container.drift.weight_report import Standing, WeightReport
from estimator_container.runtime.wire import Unpacker


class Toolkit:
    """What listens where a host's toolkit does."""

    def __init__(self, folder):
        self.path = str(folder / "host")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()

    def heard(self):
        self._listener.setblocking(False)
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return []
        sock.setblocking(False)
        messages = list(Unpacker().feed(sock.recv(1 << 20)))
        assert all(message[0] == "weights" for message in messages)
        return [WeightReport.from_fields(message[1:]) for message in messages]


@pytest.fixture
def toolkit(tmp_path):
    return Toolkit(tmp_path)


@pytest.fixture
def guard(toolkit):
    return Guard(toolkit.path, rank=1, size=4, only_warns=False)


def weight(name="dense/kernel", shape=(2, 3), dtype="float32", read=lambda: [1.0, 2.0]):
    return Weight(name, dtype, shape, read)


def steps(training, count):
    for _ in range(count):
        training.count()


def test_weights_are_sent_after_the_first_steps_and_then_now_and_then(guard, toolkit):
    steps(guard.begin(lambda: [weight()]), 1000)
    looks = toolkit.heard()
    assert [look.step for look in looks] == [2, 5, 20, 500, 1000]
    assert {look.rank for look in looks} == {1}
    assert looks[0].samples == (("dense/kernel", "float32", (1.0, 2.0)),)


def test_of_a_large_model_a_few_variables_are_sent_the_first_and_the_last_among_them(guard, toolkit):
    weights = [weight(f"layer_{number}") for number in range(100)]
    steps(guard.begin(lambda: weights), 2)
    (look,) = toolkit.heard()
    names = [sample.name for sample in look.samples]
    assert (len(names), names[0], names[-1]) == (VARIABLES, "layer_0", "layer_99")


def test_trainings_are_told_apart_by_the_names_and_shapes_of_all_variables_and_by_their_order(guard, toolkit):
    models = [[weight()], [weight()], [weight("other")], [weight(shape=(3, 2))], [weight(), weight("more")]]
    for model in models:
        steps(guard.begin(lambda model=model: model), 2)
    names = [look.training for look in toolkit.heard()]
    assert len(set(names)) == len(models)
    assert names[0].partition(".")[0] == names[1].partition(".")[0]


def test_variables_without_a_precision_are_left_out(guard, toolkit):
    steps(guard.begin(lambda: [weight("table", dtype="int64")]), 2)
    assert toolkit.heard() == []


def test_counting_begins_anew_where_all_ranks_have_met(guard, toolkit):
    training = guard.begin(lambda: [weight()])
    steps(training, 7)
    guard.restart()
    steps(training, 2)
    assert [(look.start, look.step) for look in toolkit.heard()] == [(0, 2), (0, 5), (1, 2)]


def test_a_training_that_ended_is_not_begun_anew(guard, toolkit):
    training = guard.begin(lambda: [weight()])
    training.end()
    guard.restart()
    steps(training, 20)
    assert toolkit.heard() == []


def test_a_rank_says_what_it_averages_and_with_whom(guard, toolkit):
    averaged, other, elsewhere = (guard.begin(lambda: [weight()]) for _ in range(3))
    averaged.ranks, elsewhere.ranks = (1, 3), (0, 2)
    for training in (averaged, other, elsewhere):
        steps(training, 2)
    assert [(look.standing, look.ranks) for look in toolkit.heard()] == [
        (Standing.AVERAGED, (1, 3)),
        (Standing.FREE, ()),
    ]


def gone():
    raise ReferenceError


def test_a_variable_that_is_gone_ends_its_training_alone(guard, toolkit):
    steps(guard.begin(lambda: [weight(read=gone)]), 20)
    steps(guard.begin(lambda: [weight()]), 2)
    assert [look.step for look in toolkit.heard()] == [2]


def fails():
    raise RuntimeError("it cannot be read")


def test_a_guard_that_fails_is_off_and_the_script_goes_on(guard, toolkit):
    steps(guard.begin(lambda: [weight(read=fails)]), 20)
    steps(guard.begin(lambda: [weight()]), 20)
    assert toolkit.heard() == []


def test_a_toolkit_that_is_gone_or_does_not_listen_holds_nobody_up(tmp_path, toolkit):
    steps(Guard(str(tmp_path / "nobody"), 0, 2, False).begin(lambda: [weight()]), 1000)
    deaf = Guard(toolkit.path, 0, 2, False)
    steps(deaf.begin(lambda: [weight(read=lambda: [0.1] * 8)]), 1_000_000)
    assert toolkit.heard()


def test_a_child_of_a_rank_sends_nothing(guard, toolkit):
    training = guard.begin(lambda: [weight()])
    child = os.fork()
    if child == 0:
        steps(training, 20)
        os._exit(0)
    os.waitpid(child, 0)
    assert toolkit.heard() == []
