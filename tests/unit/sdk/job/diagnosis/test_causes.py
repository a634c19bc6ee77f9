"""What is blamed for slow steps, and what is not, by what ranks have told."""

import pytest
from estimator_container.contract.events import RankSlow

from estimator_sdk.job.diagnosis import causes
from estimator_sdk.job.diagnosis.machine_load import HostLoad
from estimator_sdk.job.diagnosis.shares import shares_of
from estimator_sdk.job.diagnosis.step_records import StepSample

STEPS, STEP = 100, 0.2


def told(input=0.0, communication=0.0, checkpoint=None, idle=0.0, steps=STEPS, step=STEP, every=10):
    """What a rank tells whose steps are all alike: seconds of each step, and the rest computing."""
    kinds = (input, communication, checkpoint, idle)
    return [
        StepSample(count, count * step, *(None if each is None else count * each for each in kinds))
        for count in range(every, steps + 1, every)
    ]


def found(*ranks, slow=(), loads=()):
    samples = {(f"algo-{number // 2 + 1}", number): each for number, each in enumerate(ranks)}
    shares = [shares_of(who, each) for who, each in samples.items()]
    return causes.find(shares, samples, slow, loads)


def kinds(*ranks, **arguments):
    return [cause.kind for cause in found(*ranks, **arguments)]


@pytest.mark.parametrize(
    ("share", "name"),
    [
        (None, None),
        (0.0, "not input bound"),
        (0.0499, "not input bound"),
        (0.05, "moderately input bound"),
        (0.199, "moderately input bound"),
        (0.2, "highly input bound"),
    ],
)
def test_the_classes_are_those_of_tensorflows_profiler(share, name):
    assert causes.input_class(share) == name


def test_where_nothing_takes_much_nothing_is_blamed():
    assert found(told(input=0.008, communication=0.01), told(input=0.009, communication=0.01)) == ()


@pytest.mark.parametrize("kind", ["input", "communication", "checkpoint", "idle"])
def test_what_all_ranks_spend_their_time_on_is_the_cause(kind):
    (cause,) = found(told(**{kind: 0.08}), told(**{kind: 0.08}))
    assert (cause.kind, cause.rank) == (kind, None)
    assert cause.share == pytest.approx(0.4)
    assert cause.most_gain == pytest.approx(1 / 0.6)


def test_what_takes_most_comes_first():
    assert kinds(told(input=0.03, checkpoint=0.06)) == ["checkpoint", "input"]


def slow_at_first(input):
    """A rank that waits for all of its input in the first quarter of the steps."""
    ends = range(5, STEPS + 1, 5)
    return [StepSample(count, count * STEP, min(count, STEPS // 4) * 4 * input, None, None, 0.0) for count in ends]


@pytest.mark.parametrize(("seconds", "named"), [(0.012, []), (0.04, ["input"])])
def test_a_moment_that_was_slow_is_no_cause_unless_it_took_much(seconds, named):
    """Of each step 6 % is waiting for input, or 20 %, by the mean."""
    assert kinds(slow_at_first(seconds)) == named
    assert kinds(told(input=seconds)) == ["input"]


def test_a_checkpoint_that_is_written_once_counts():
    written = [StepSample(each.steps, each.seconds, None, None, each.input, 0.0) for each in slow_at_first(0.012)]
    assert kinds(written) == ["checkpoint"]


def test_of_few_steps_nothing_is_said():
    few = told(input=0.15, steps=causes.LEAST_STEPS - 1, step=1.0, every=1)
    assert found(few) == ()
    assert "19 steps" in causes.why_thin([shares_of(("algo-1", 0), few)])
    short = told(input=0.01, steps=100, step=0.02)
    assert found(short) == ()
    assert "in 2.0 s" in causes.why_thin([shares_of(("algo-1", 0), short)])


def test_one_rank_with_few_steps_makes_the_evidence_thin():
    assert found(told(input=0.1), told(input=0.1, steps=10, every=5)) == ()


def test_without_any_steps_it_says_how_steps_become_known():
    assert "mark_step" in causes.why_thin([])


def test_a_rank_that_does_nothing_on_a_host_that_is_busy_waits_for_a_cpu():
    assert kinds(told(idle=0.06), loads=[HostLoad("algo-1", 2, 0.95, 0.0)]) == ["too few CPUs"]
    assert kinds(told(idle=0.06), loads=[HostLoad("algo-1", 2, 0.60, 0.0)]) == ["idle"]


@pytest.mark.parametrize(("pressure", "kind"), [(0.45, "too few CPUs"), (0.2, "idle")])
def test_so_it_does_in_a_container_where_tasks_wait_for_cpus_as_long_as_it_is_idle(pressure, kind):
    """A container sees its own CPU time alone, whatever its machine does."""
    (cause,) = found(told(idle=0.06), loads=[HostLoad("algo-1", 2, 0.40, 0.0, cpu_pressure=pressure)])
    assert cause.kind == kind
    assert ("some task waited for a CPU in 45 % of the time" in cause.sentence) == (kind == "too few CPUs")


# One slow rank.


def waiting(seconds):
    """A rank that is fast, and waits so much of each step for the others."""
    return told(communication=seconds)


def test_the_rank_for_which_all_others_wait_is_named_with_what_it_does():
    slow = told(communication=0.004, input=0.09)
    (cause,) = found(waiting(0.08), waiting(0.079), slow, waiting(0.081))
    assert (cause.kind, cause.host, cause.rank) == ("slow rank", "algo-2", 2)
    assert cause.share == pytest.approx(0.38, abs=0.01)
    assert "rank 2 on algo-2 is slow" in cause.sentence and "waiting for input" in cause.sentence


def test_a_rank_that_writes_checkpoints_while_the_others_wait_is_not_called_slow():
    (cause,) = found(told(communication=0.004, checkpoint=0.08), waiting(0.084), waiting(0.084))
    assert (cause.kind, cause.rank) == ("checkpoint", 0)
    assert cause.share == pytest.approx(0.4)
    assert "rank 0 on algo-1 writes checkpoints in 40 % of a step, and the others wait" in cause.sentence


def test_of_two_ranks_the_slow_one_is_named():
    (cause,) = found(told(communication=0.002), waiting(0.09))
    assert (cause.rank, cause.sentence.endswith("computing")) == (0, True)


def test_the_wait_for_a_slow_rank_is_not_blamed_on_the_network():
    assert kinds(told(communication=0.004), waiting(0.1), waiting(0.1)) == ["slow rank"]


def test_a_slow_network_is_not_blamed_on_a_rank():
    assert kinds(told(communication=0.09), told(communication=0.092), told(communication=0.088)) == ["communication"]


def test_a_rank_that_is_slow_in_a_part_of_the_steps_alone_is_not_named():
    def taking_turns(slow_until):
        samples, spent = [], 0.0
        for count in range(10, STEPS + 1, 10):
            spent += 10 * (0.0 if count <= slow_until else 0.08)
            samples.append(StepSample(count, count * STEP, 0.0, spent, None, 0.0))
        return samples

    first, then = (
        taking_turns(50),
        [
            StepSample(each.steps, each.seconds, 0.0, 0.08 * each.steps - other.communication, None, 0.0)
            for each, other in zip(taking_turns(0), taking_turns(50), strict=True)
        ],
    )
    assert "slow rank" not in kinds(first, then)


def test_where_it_is_not_known_how_long_a_rank_waits_none_is_named_by_that():
    assert "slow rank" not in kinds(told(communication=0.004), told(communication=None), waiting(0.1))


def test_a_rank_that_the_toolkit_has_named_is_named():
    event = RankSlow("algo-1", 1, 1.5, 0.3, 0.2)
    (cause,) = found(told(communication=None), told(communication=None), slow=[event])
    assert (cause.kind, cause.rank, round(cause.share, 3)) == ("slow rank", 1, 0.333)


# On GPUs.


def test_waiting_for_input_while_the_gpu_works_costs_nothing():
    busy = HostLoad("algo-1", 8, 0.2, 0.0, gpu=0.98)
    assert found(told(input=0.1), loads=[busy]) == ()


def test_no_more_is_lost_than_the_gpu_does_not_work():
    (cause,) = found(told(input=0.1), loads=[HostLoad("algo-1", 8, 0.2, 0.0, gpu=0.9)])
    assert cause.share == pytest.approx(0.1)
    (cause,) = found(told(input=0.1), loads=[HostLoad("algo-1", 8, 0.2, 0.0, gpu=0.2)])
    assert cause.share == pytest.approx(0.5)


# What to try.


def advice(*loads):
    (cause,) = found(told(input=0.1), loads=loads)
    return cause.advice


def test_a_host_with_cpus_to_spare_is_advised_to_load_with_more_workers():
    said = advice(HostLoad("algo-1", 8, 0.2, 0.0), HostLoad("algo-2", 8, 0.25, 0.0))
    assert "algo-2, the busiest host, uses 2.0 of its 8 CPUs" in said and "num_workers" in said


def test_a_host_whose_cpus_are_busy_is_not():
    said = advice(HostLoad("algo-1", 8, 0.97, 0.0))
    assert "the CPUs of algo-1 are 97 % busy" in said and "num_workers" not in said


def test_nor_is_one_that_waits_for_its_disk():
    assert "waited for its disk in 60 % of the time" in advice(HostLoad("algo-1", 8, 0.3, 0.6))


def test_where_nothing_was_measured_it_says_so():
    assert "were not measured" in advice()
