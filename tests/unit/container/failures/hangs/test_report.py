import pytest
from estimator_container.failures.hangs import waiting
from estimator_container.failures.hangs.report import HangFinding, HangRule, rule_for
from estimator_container.failures.hangs.standing import StandingRank
from estimator_container.logs.frames import NO_RANK

WAITS = StandingRank("a", call="barrier", is_collective=True, spins=True)


def of_ranks(*ranks):
    return {(f"algo-{number // 2 + 1}", number): each for number, each in enumerate(ranks)}


@pytest.mark.parametrize(
    ("ranks", "seconds"),
    [
        ([WAITS, StandingRank("b")], 30.0),
        ([WAITS, StandingRank("b", sleeps=True)], 600.0),
        ([WAITS, StandingRank("b", works=True)], 1800.0),
        ([WAITS, WAITS], 1800.0),  # nobody is missing, so it may be a slow one
    ],
)
def test_how_long_ranks_may_stand_still(ranks, seconds):
    assert rule_for(of_ranks(*ranks), 30.0, 30.0, 1800.0).seconds == seconds
    assert rule_for(of_ranks(*ranks), 1800.0, 30.0, 1800.0).seconds == 1800.0


def test_who_is_missing_from_the_collective_of_the_others_is_named():
    standing = of_ranks(WAITS, StandingRank("b", place="train.py, line 7 in step"))
    finding = HangFinding(standing, (), 31.0, HangRule(30.0, "after the silences so far"))
    found = finding.verdict()
    assert (found.rank, found.host) == (1, "algo-1")
    assert found.message == (
        "a deadlock is suspected: no rank has written anything or moved from its line for 31 s (30 s are allowed after "
        "the silences so far); rank 1 on algo-1 is missing at train.py, line 7 in step, and rank 0 waits in barrier"
    )
    assert finding.facts()["missing"] == [{"host": "algo-1", "rank": 1}]


def test_without_a_world_the_host_is_named():
    finding = HangFinding({("algo-2", NO_RANK): StandingRank("a", place="a.py, line 1 in f")}, (), 31.0, HangRule(30.0))
    found = finding.verdict()
    assert (found.rank, found.host) == (None, "algo-2")
    assert "the script on algo-2 has written nothing" in found.message


def test_what_a_host_tells_another_is_what_it_knows():
    given = WAITS._replace(output_age=3.0, kernel={"state": "S"}, collectives=[{"group": "a"}])
    assert StandingRank.from_json(given.to_json()) == given


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("MPI.COMM_WORLD.Barrier()", "Barrier"),
        ("total = world.allreduce(mine)", "allreduce"),
        ("links[0].recv(1)", "recv"),
        ("np.add.reduce(values)", None),
        ("torch.gather(a, 0, b)", None),
        ("time.sleep(5)", None),
    ],
)
def test_a_call_in_which_ranks_wait_for_each_other_is_known_by_its_line(tmp_path, line, name):
    (tmp_path / "train.py").write_text(f"{line}\n")
    call = waiting.call_in('  File "train.py", line 1 in <module>', str(tmp_path))
    assert (call.name if call else None) == name
