"""Whom the first host finds to differ, whom it does not, and what it says of it."""

import math

import pytest
from estimator_container.drift.training import FIRST_LOOKS
from estimator_container.drift.weight_report import Sample, Standing, WeightReport
from estimator_container.failures.drift import PENDING, TRAININGS, Judge
from estimator_container.worlds.mpi.world import MpiWorld

WORLD = MpiWorld(("algo-1", "algo-2"), 2)


def look(rank, step, value=1.0, **more):
    """What a rank sends; `value` is a number, or those of two variables."""
    values = value if isinstance(value, tuple) else (0.5, value)
    dtype = more.pop("dtype", "float32")
    samples = tuple(Sample(f"dense/{name}", dtype, (0.25, each)) for name, each in zip("ab", values))
    facts = {"training": "net", "start": 0, "standing": Standing.AVERAGED, "only_warns": False, "ranks": ()}
    return WeightReport(rank=rank, step=step, samples=samples, **{**facts, **more})


def findings(*looks, size=4):
    judge = Judge(size)
    return [found for found in map(judge.hear, looks) if found]


def at(step, *values, **more):
    return [look(rank, step, value, **more) for rank, value in enumerate(values)]


def test_a_rank_that_differs_at_two_looks_is_found_within_twenty_steps():
    rounds = [at(step, 1.0, 1.0, 1.0, 1.1) for step in FIRST_LOOKS]
    (found,) = findings(*(each for round_ in rounds for each in round_))
    assert (found.since, found.difference.step) == (2, 5)
    verdict = found.verdict(WORLD)
    assert (verdict.kind, verdict.rank, verdict.host, verdict.is_user_failure) == ("ranks_differ", 3, "algo-2", True)
    assert "since step 2 the weights 'dense/b' differ, rank 3 from ranks 0, 1 and 2" in verdict.message
    assert "'dense/b' after step 5" in verdict.detail and "rank 3: 0.25 1.1" in verdict.detail


def test_one_look_is_not_enough_and_a_look_at_which_all_agree_clears_them():
    apart, together = (1.0, 1.0, 1.0, 2.0), (1.0,) * 4
    assert not findings(*at(2, *apart), *at(5, *together), *at(10, *apart))


@pytest.mark.parametrize(
    ("values", "said", "rank"),
    [
        ((1, 1, 2, 2), "differ, ranks 0 and 1 from ranks 2 and 3", None),
        ((1, 2, 3, 4), "differ, all ranks differ", None),
        ((1, 2, 1, 1), "differ, rank 1 from ranks 0, 2 and 3", 1),
        ((1, 1, 2, 3), "differ, ranks 0 and 1, rank 2 and rank 3 from each other", None),
        ((1, 1, math.nan, 1), "differ, rank 2 from ranks 0, 1 and 3", 2),
    ],
)
def test_it_says_who_differs_from_whom(values, said, rank):
    (found,) = findings(*at(2, *map(float, values)), *at(5, *map(float, values)))
    assert said in found.text
    assert found.verdict(WORLD).rank == rank


def test_the_variable_that_differs_most_is_named():
    values = [(1.0, 1.0), (1.001, 1.0), (1.0, 1.5), (1.0, 1.0)]
    (found,) = findings(*at(2, *values), *at(5, *values))
    assert found.difference.variable == "dense/b"


@pytest.mark.parametrize(
    ("dtype", "step", "apart", "differs"),
    [
        ("float32", 5, 1e-7, False),  # one rounding
        ("float32", 5, 1e-5, True),
        ("float32", 1_000_000, 1e-4, False),  # a million roundings
        ("float32", 1_000_000, 1e-2, True),
        ("float64", 5, 1e-7, True),
        ("float16", 5, 2.0**-10, False),
        ("float16", 5, 2.0**-8, True),
        ("bfloat16", 5, 2.0**-7, False),
        ("bfloat16", 5, 2.0**-5, True),
    ],
)
def test_what_rounding_may_come_to_is_allowed(dtype, step, apart, differs):
    values = (1.0, 1.0 + apart)
    found = findings(*at(step, *values, dtype=dtype), *at(step + 5, *values, dtype=dtype), size=2)
    assert bool(found) == differs


def test_ranks_that_are_all_without_a_number_agree():
    assert not findings(*at(2, *[math.nan] * 4), *at(5, *[math.inf] * 4), *at(10, *[math.nan] * 4))


def test_only_those_that_average_with_each_other_are_compared():
    evens = [look(rank, step, 1.0, training="evens", ranks=(0, 2)) for step in (2, 5) for rank in (0, 2)]
    odds = [look(rank, step, float(rank), training="odds", ranks=(1, 3)) for step in (2, 5) for rank in (1, 3)]
    (found,) = findings(*evens, *odds)
    assert found.difference.groups == ((1,), (3,))


def test_models_of_other_names_or_shapes_are_not_compared():
    assert not findings(*(look(rank, step, float(rank), training=f"net{rank}") for step in (2, 5) for rank in range(4)))


def test_steps_are_not_compared_with_others_nor_with_those_before_all_ranks_met():
    assert not findings(*at(2, 1.0, 1.0), look(0, 5), look(1, 10, 2.0), look(0, 20), look(1, 20, 2.0, start=1), size=2)


@pytest.mark.parametrize(
    ("standings", "ends"),
    [
        ((Standing.AVERAGED, Standing.AVERAGED), True),
        ((Standing.ASKED, Standing.ASKED), True),
        ((Standing.ASKED, Standing.FREE), False),
        ((Standing.FREE, Standing.FREE), False),
    ],
)
def test_the_job_ends_where_all_ranks_ask_for_equal_weights(standings, ends):
    looks = [look(rank, step, rank, standing=each) for step in (2, 5) for rank, each in enumerate(standings)]
    (found,) = findings(*looks, size=2)
    assert found.ends_the_job == ends
    assert ("the job goes on" in found.text) != ends


def test_a_script_may_ask_for_a_warning_alone():
    (found,) = findings(*at(2, 1.0, 2.0, only_warns=True), *at(5, 1.0, 2.0, only_warns=True), size=2)
    assert not found.ends_the_job
    assert found.event.standing == "averaged"


def test_ranks_may_be_ahead_of_each_other_and_looks_that_never_get_whole_are_forgotten():
    judge = Judge(2)
    steps = range(1, PENDING + 2)
    assert not any(judge.hear(look(0, step)) for step in steps)
    assert not judge.hear(look(1, 1, 2.0))  # forgotten
    found = [judge.hear(look(1, step, 2.0)) for step in steps[1:3]]
    assert found[0] is None and found[1] is not None and found[1].since == 2


def test_it_remembers_no_more_trainings_than_it_can_hold():
    judge = Judge(2)
    for number in range(TRAININGS + 10):
        judge.hear(look(0, 2, training=f"net{number}"))
    assert len(judge._trainings) <= TRAININGS


def test_a_look_travels_as_the_fields_of_a_message():
    sent = look(1, 5, math.pi, ranks=(0, 1), only_warns=True)
    assert WeightReport.from_fields(sent.to_fields()) == sent


@pytest.mark.parametrize("fields", [[], ["1", "net"], [*look(0, 2).to_fields(), "name"]])
def test_what_is_no_look_is_refused(fields):
    with pytest.raises(ValueError):
        WeightReport.from_fields(fields)
