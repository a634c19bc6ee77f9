import pytest
from estimator_container.failures.silence import Silence
from estimator_container.mesh.pulse import MISSED_BEATS


class Reach:
    """What a host knows of its network, in the place of the real one."""

    def __init__(self, loop):
        self.checks = []

    def check(self, then):
        self.checks.append(then)


@pytest.fixture
def silence(loop, monkeypatch):
    monkeypatch.setattr("estimator_container.failures.silence.Reach", Reach)

    def make(*others):
        found = []
        made = Silence(loop, "algo-1", others, MISSED_BEATS, found.append)
        return made, made._reach.checks, found

    return make


@pytest.mark.parametrize(
    ("others", "silent", "cut_off", "blamed"),
    [
        (("algo-2",), ("algo-2",), False, "algo-2"),
        (("algo-2",), ("algo-2",), True, "algo-1"),
        (("algo-2", "algo-3"), ("algo-3",), False, "algo-3"),
        (("algo-2", "algo-3"), ("algo-3", "algo-2"), False, "algo-1"),
    ],
)
def test_one_host_of_several_is_to_blame_for_its_silence_and_who_hears_nobody_for_that_of_all(
    silence, others, silent, cut_off, blamed
):
    made, checks, found = silence(*others)
    for host in silent:
        made.begins(host)
    (then,) = checks
    then(cut_off)
    (verdict,) = found
    assert (verdict.kind, verdict.host) == ("host_lost", blamed)


def test_nobody_is_blamed_where_others_have_come_in_the_place_of_the_silent(silence):
    made, checks, found = silence("algo-2", "algo-3")
    made.begins("algo-2")
    made.begins("algo-3")
    assert made.silent == ["algo-2", "algo-3"]
    made.forget("algo-2")
    made.forget("algo-3")
    (then,) = checks
    then(False)
    assert (made.silent, found) == ([], [])


@pytest.mark.parametrize("on_loopback", [True, False])
def test_a_network_is_learnt_where_there_is_one(silence, on_loopback):
    made, _, _ = silence("algo-2")
    learnt = []
    made._reach.learn = lambda: learnt.append(True)
    made.learn(on_loopback)
    assert learnt == [True] * (not on_loopback)
