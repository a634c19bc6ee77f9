from estimator_container.host.coordination.step_run import StepRun
from estimator_container.logs.frames import NO_RANK, number_of
from estimator_container.ranks.server import Ended

PLACES = (("algo-1", 0), ("algo-1", 1), ("algo-2", 2))


def ended(*reports):
    run = StepRun(PLACES)
    for (host, rank), (code, told) in zip(PLACES, reports):
        run.ended[host, rank] = Ended(rank, code, told, "")
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


def test_what_is_no_look_at_weights_is_left_alone():
    assert StepRun(PLACES).judge_weights(["0", "net", "two"]) is None


CHILD = number_of(2, 1)


def test_a_step_has_not_ended_before_the_ranks_that_its_ranks_have_spawned():
    well = (0, False)
    run = ended(well, well, well)
    run.spawned.add(("algo-2", CHILD))
    assert not run.all_ended and not run.all_ended_well
    run.rank_ended("algo-2", Ended(CHILD, 0, False, ""))
    assert run.all_ended_well


def test_of_several_worlds_the_rank_is_meant_that_ended_as_mpirun_says():
    run = ended((0, False), (1, True))
    run.spawned.add(("algo-2", CHILD))
    assert run.place_of(1, 5) == ("algo-1", 1)
    run.rank_ended("algo-2", Ended(CHILD, 5, False, "so long"))
    assert run.place_of(1, 5) == ("algo-2", CHILD)
    assert run.last_words_of(CHILD) == "so long"
