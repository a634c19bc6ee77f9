import pytest
from estimator_container.failures.lost_hosts import LostHosts
from estimator_container.mesh.pulse import MISSED_BEATS, Loss

SILENT, UNHEARD = Loss.SILENT, Loss.UNHEARD


class Reach:
    """What a host knows of its network, in the place of the real one."""

    def __init__(self, loop):
        self.checks = []

    def check(self, then):
        self.checks.append(then)


@pytest.fixture
def lost_hosts(loop, monkeypatch):
    monkeypatch.setattr("estimator_container.failures.lost_hosts.Reach", Reach)

    def make(*others):
        found = []
        made = LostHosts(loop, "algo-1", others, MISSED_BEATS, found.append)
        return made, made._reach.checks, found

    return make


@pytest.mark.parametrize(
    ("others", "apart", "cut_off", "blamed", "words"),
    [
        (("algo-2",), {"algo-2": SILENT}, False, "algo-2", "algo-2 is frozen or cut off"),
        (("algo-2",), {"algo-2": SILENT}, True, "algo-1", "algo-1 is cut off from its network"),
        (("algo-2", "algo-3"), {"algo-3": SILENT}, False, "algo-3", "algo-3 is frozen or cut off"),
        (("algo-2", "algo-3"), {"algo-3": SILENT, "algo-2": SILENT}, False, "algo-1", "algo-1 is cut off"),
        (("algo-2", "algo-3"), {"algo-3": UNHEARD, "algo-2": SILENT}, False, "algo-1", "cut off: algo-3 heard nothing"),
        (("algo-2", "algo-3"), {"algo-3": UNHEARD}, False, "algo-3", "algo-3 is gone: its connection to algo-1 ended"),
        (("algo-2", "algo-3", "algo-4"), {"algo-3": UNHEARD, "algo-4": SILENT}, False, "algo-4", "algo-4 is frozen"),
    ],
)
def test_one_host_of_several_is_to_blame_for_its_silence_and_who_hears_nobody_for_that_of_all(
    lost_hosts, others, apart, cut_off, blamed, words
):
    made, checks, found = lost_hosts(*others)
    for host, how in apart.items():
        made.lose(host, how)
    assert found == []
    (then,) = checks
    then(cut_off)
    (verdict,) = found
    assert (verdict.kind, verdict.host) == ("host_lost", blamed)
    assert words in verdict.message


@pytest.mark.parametrize(
    ("others", "apart"),
    [
        (("algo-2",), {"algo-2": UNHEARD}),
        (("algo-2", "algo-3"), {"algo-3": UNHEARD, "algo-2": UNHEARD}),
        (("algo-2", "algo-3"), {"algo-3": Loss.STOOD_STILL}),
    ],
)
def test_a_host_that_no_other_has_heard_or_that_knows_why_blames_itself_at_once(lost_hosts, others, apart):
    """Before its ranks, which have lost theirs meanwhile, are taken for the cause."""
    made, _, found = lost_hosts(*others)
    for host, how in apart.items():
        made.lose(host, how)
    (verdict,) = found
    assert (verdict.kind, verdict.host) == ("host_lost", "algo-1")
    assert f"stood still or was cut off: {', '.join(apart)} heard nothing from it" in verdict.message


def test_a_host_that_has_closed_its_connection_is_to_blame_at_once(lost_hosts):
    made, checks, found = lost_hosts("algo-2", "algo-3")
    made.lose("algo-3", Loss.CLOSED)
    assert [verdict.host for verdict in found] == ["algo-3"]
    assert (checks, made.apart) == ([], {})


def test_nobody_is_blamed_where_others_have_come_in_the_place_of_the_silent(lost_hosts):
    made, checks, found = lost_hosts("algo-2", "algo-3")
    made.lose("algo-2", SILENT)
    made.lose("algo-3", SILENT)
    assert list(made.apart) == ["algo-2", "algo-3"]
    made.forget("algo-2")
    made.forget("algo-3")
    (then,) = checks
    then(False)
    assert (list(made.apart), found) == ([], [])


@pytest.mark.parametrize("on_loopback", [True, False])
def test_a_network_is_learnt_where_there_is_one(lost_hosts, on_loopback):
    made, _, _ = lost_hosts("algo-2")
    learnt = []
    made._reach.learn = lambda: learnt.append(True)
    made.learn(on_loopback)
    assert learnt == [True] * (not on_loopback)
