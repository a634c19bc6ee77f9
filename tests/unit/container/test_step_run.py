from estimator_container.frames import NO_RANK
from estimator_container.ranks import Ended
from estimator_container.step_run import StepRun

PLACES = (("algo-1", 0), ("algo-1", 1), ("algo-2", 2))


def ended(*reports):
    run = StepRun(PLACES)
    for (host, rank), (code, told) in zip(PLACES, reports, strict=False):
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
