import pytest
from estimator_container.contract.steps import Step
from estimator_container.failures.hangs.report import HangRule
from estimator_container.failures.hangs.standing import StandingRank
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination.step_run import StepRun
from estimator_container.logs.frames import NO_RANK, number_of
from estimator_container.ranks.server import RankEnd

MISSED_AT_MOST = 30.0  # seconds after which the silence of a host is its loss, however busy its machine is
PLACES = (("algo-1", 0), ("algo-1", 1), ("algo-2", 2))


def ended(*reports):
    run = StepRun(PLACES)
    for (host, rank), (code, told) in zip(PLACES, reports):
        run.ended[host, rank] = RankEnd(rank, code, told, "")
    return run


def test_who_has_not_ended_is_late():
    assert ended((0, False)).late() == [("algo-1", 1), ("algo-2", 2)]
    assert StepRun((("algo-1", NO_RANK),)).late() == [("algo-1", None)]


def test_a_step_ends_well_when_all_ranks_have_by_themselves():
    well = (0, False)
    assert ended(well, well, well).all_ended_well
    assert not ended(well, well).all_ended_well
    for other in ((1, False), (0, True), (-9, False)):
        run = ended(well, other, well)
        assert (run.all_ended, run.all_ended_well) == (True, False)


def test_the_reports_of_a_world_that_has_ended_well_are_waited_for_as_long_as_its_hosts_are_there():
    """One that does not get a CPU is late; where mpirun has run nothing there is nothing to wait for."""
    assert ended((0, False)).seconds_for_reports(0) > MISSED_AT_MOST
    assert StepRun(PLACES).seconds_for_reports(0) < 10
    assert ended((0, False), (0, True)).seconds_for_reports(0) < 10  # MPI_Abort(0) ends mpirun so
    assert ended((0, False)).seconds_for_reports(1) < 10


def test_what_is_no_look_at_weights_is_left_alone():
    assert StepRun(PLACES).judge_weights(["0", "net", "two"]) is None


CHILD = number_of(2, 1)


def test_a_step_has_not_ended_before_the_ranks_that_its_ranks_have_spawned():
    well = (0, False)
    run = ended(well, well, well)
    run.spawned.add(("algo-2", CHILD))
    assert not run.all_ended and not run.all_ended_well
    run.rank_ended("algo-2", RankEnd(CHILD, 0, False, ""))
    assert run.all_ended_well


def test_of_several_worlds_the_rank_is_meant_that_ended_as_mpirun_says():
    run = ended((0, False), (1, True))
    run.spawned.add(("algo-2", CHILD))
    assert run.place_of(1, 5) == ("algo-1", 1)
    run.rank_ended("algo-2", RankEnd(CHILD, 5, False, "so long"))
    assert run.place_of(1, 5) == ("algo-2", CHILD)
    assert run.last_words_of(CHILD) == "so long"


def test_of_late_hosts_the_one_is_named_that_never_came():
    run = StepRun(PLACES)
    assert run.verdict_on_late_hosts(3.0, []).message == "after 3 s these hosts were not ready: algo-1, algo-2"
    run.ready.add("algo-1")
    found = run.verdict_on_late_hosts(3.0, ["algo-2"])
    assert (found.kind, found.host) == ("host_missing", "algo-2")
    assert found.message == "after 3 s these hosts were not ready: algo-2; algo-2 never connected"


def test_of_late_ranks_those_hosts_are_named_that_do_not_run_all_of_theirs():
    run = StepRun(PLACES)
    run.ranks_started("algo-1", 0)
    run.ranks_started("algo-2", 1)  # of another step
    found = run.verdict_on_late_ranks(3.0)
    assert (found.kind, found.host) == ("host_missing", "algo-2")
    assert found.message == "3 s after all hosts were ready not every rank runs on algo-2"


def test_a_rank_that_fails_takes_those_along_that_have_not_ended_well():
    run = ended((0, False))
    found = run.verdict_on_rank("algo-2", RankEnd(2, 3, False, ""))
    assert (found.kind, found.host, found.rank, found.victims) == ("exit_code", "algo-2", 2, (1,))
    alone = StepRun((("algo-1", NO_RANK), ("algo-2", NO_RANK)))
    found = alone.verdict_on_rank("algo-2", RankEnd(NO_RANK, 3, False, ""))
    assert (found.host, found.rank, found.victims) == ("algo-2", None, ())


def test_where_mpirun_ends_all_ranks_the_only_one_that_left_by_itself_is_to_blame():
    assert ended((0, True), (0, True), (0, True)).verdict_on_leaver() is None
    assert ended((0, False), (0, False), (15, True)).verdict_on_leaver() is None
    found = ended((0, True), (0, False), (15, True)).verdict_on_leaver()
    assert (found.kind, found.host, found.rank) == ("early_exit", "algo-1", 1)


def test_ranks_that_stand_still_are_stuck_once_nobody_else_can_move():
    run = StepRun(PLACES)
    run.standing["algo-1"] = {0: StandingRank("  in a\n"), 1: StandingRank("  in a\n")}
    assert run.all_standing() is None
    run.standing["algo-2"] = {2: StandingRank("  in b\n")}
    standing = run.all_standing()
    assert sorted(standing) == sorted(PLACES)
    assert run.finding(standing, 5.0, HangRule(5.0)).verdict().kind == "deadlock"


@pytest.mark.parametrize(
    ("words", "code", "kind", "rank"),
    [
        ("MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 7.", 7, "exit_code", 2),
        ("process rank 1 with PID 12 on\nnode box exiting improperly.", 0, "early_exit", 1),
        ("something else", 1, "mpi", None),
    ],
)
def test_where_no_rank_has_failed_the_words_of_mpirun_tell_who_did(words, code, kind, rank):
    found = StepRun(PLACES).verdict_on_mpirun("algo-1", code, words)
    assert (found.kind, found.rank) == (kind, rank)


def test_a_verdict_names_the_step_only_while_one_runs():
    found = Verdict("mpi", "mpirun ended")
    run = StepRun(PLACES, 1, Step("train", "python train.py"))
    assert run.named(found) == found
    run.ready |= {"algo-1", "algo-2"}
    assert run.named(found).message == "step 'train' (python train.py): mpirun ended"
    assert StepRun(PLACES).named(found) == found
