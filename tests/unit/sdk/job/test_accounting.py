"""Where the time of a job went, from a timeline that is written down here."""

import pytest
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.job import accounting
from estimator_sdk.job.ledger import PHASES
from estimator_sdk.job.timeline import AttemptTimeline, HostTimeline, RankTimeline, SnapshotTime, Span, Timeline

KILLED = Verdict(Kind.SIGNAL, "rank 1 on algo-1 was killed by SIGKILL", "algo-1", 1, None, "SIGKILL")
RANKS = (("algo-1", 0), ("algo-1", 1))


def rank(started, *spans, ended=None, code=0, **facts):
    steps = {first: Span(first, last) for first, last in spans}
    return RankTimeline(started, ended, None if ended is None else code, steps, **facts)


def attempt(number, began, ended, ranks, verdict=None, hosts=None, **facts):
    record = AttemptRecord(number, began, ended, verdict)
    return AttemptTimeline(record, hosts=hosts or {}, ranks=dict(zip(RANKS, ranks, strict=True)), **facts)


def made(*attempts, created=0.0, ended=100.0, is_final=True):
    found = accounting.make(Timeline(created, ended, is_final, attempts, RANKS))
    assert sum(found.seconds.values()) == pytest.approx(found.wall)
    assert min(found.seconds.values()) >= 0
    return found


def spent(found):
    """The phases that took time."""
    return {phase: round(seconds, 6) for phase, seconds in found.seconds.items() if seconds}


WHOLE = attempt(
    1,
    2,
    97,
    [rank(10, (20, 80), ended=85), rank(11, (20, 80), ended=89)],
    hosts={"algo-1": HostTimeline(requirements=Span(6, 8), ended=90)},
    restored=4.0,
    channels=5.0,
    base="nothing",
    snapshots=[SnapshotTime("1", 50, 51), SnapshotTime("2", 80, 95)],
)


def test_a_plain_job_is_cut_into_all_its_phases():
    found = made(WHOLE)
    assert spent(found) == {
        "launch": 2 + 1 + 2.5,
        "restore": 2,
        "channels": 1,
        "requirements": 2,
        "first_step": 9.5,
        "steps": 60,
        "after_steps": 7,
        "ranks_missing": 2,
        "end": 1 + 2,
        "checkpoint_stall": 5,
        "outputs": 3,
    }
    assert (found.goodput, found.source, found.ranks) == (0.6, "steps", 2)


def test_the_sentence_names_the_longest_phases():
    assert made(WHOLE).sentence() == (
        "goodput 60 % (steps 60 s of 100 s; "
        "imports and first step 9.5 s, after the last step 7.0 s, launch 5.5 s, last checkpoint 5.0 s, other 13 s)"
    )


FAILED = attempt(
    1,
    0,
    44,
    [rank(5, (10, 39), ended=43, code=-9), rank(5, (10, 39), ended=40, code=-9)],
    KILLED,
    hosts={"algo-1": HostTimeline(ended=43)},
    failure_found=41.0,
    restored=1.0,
    base="nothing",
    snapshots=[SnapshotTime("1", 30, 31)],
)
AGAIN = attempt(
    2,
    46,
    100,
    [rank(50, (55, 100), ended=100), rank(50, (55, 100), ended=100)],
    hosts={"algo-1": HostTimeline(ended=100)},
    restored=47.0,
    base="1",
)


def test_steps_after_the_snapshot_from_which_the_next_attempt_began_are_lost():
    found = made(FAILED, AGAIN)
    assert spent(found) == {
        "launch": 4,
        "restore": 1 + 1,
        "first_step": 5 + 5,
        "steps": 20 + 45,
        "lost_steps": 9 + 1,  # and the one in which it was killed
        "notice": 1,
        "end": 2 + 1,
        "restart": 2 + 3,
    }


def test_each_attempt_has_what_it_cost_and_why_it_ended():
    first, second = made(FAILED, AGAIN).attempts
    assert (first.number, first.seconds, first.steps, first.why) == (1, 46, 20, KILLED.message)
    assert (second.number, second.seconds, second.steps, second.why) == (2, 54, 45, "")


def test_without_checkpoints_nothing_of_a_failed_attempt_survives():
    first = attempt(1, 0, 44, FAILED.ranks.values(), KILLED, failure_found=41.0)
    second = attempt(2, 46, 100, AGAIN.ranks.values())
    found = made(first, second)
    assert (found.seconds["steps"], found.seconds["lost_steps"]) == (45, 30)


def test_of_an_attempt_that_leaves_no_snapshot_nothing_survives_but_of_the_one_before_it_what_that_has_left():
    nothing = attempt(2, 46, 60, [rank(50, (52, 58), ended=59, code=1)] * 2, KILLED, restored=47.0, base="1")
    third = attempt(3, 60, 100, [rank(61, (65, 100), ended=100)] * 2, restored=60.5, base="1")
    found = made(FAILED, nothing, third)
    assert [cost.steps for cost in found.attempts] == [20, 0, 35]


def test_of_a_job_that_failed_what_is_in_its_newest_snapshot_survives():
    found = made(FAILED, ended=45)
    assert (found.seconds["steps"], found.seconds["lost_steps"]) == (20, 10)
    none = attempt(1, 0, 44, FAILED.ranks.values(), KILLED, failure_found=41.0)
    assert made(none, ended=45).seconds["steps"] == 0


def test_a_job_that_failed_before_its_last_attempt_began_from_anything_keeps_the_newest_snapshot():
    second = attempt(2, 46, 47, [RankTimeline()] * 2, KILLED)
    assert made(FAILED, second, ended=48).seconds["steps"] == 20


def test_steps_of_a_job_that_was_stopped_survive_up_to_the_stop():
    stopped = attempt(
        1,
        0,
        60,
        [rank(5, (10, 49), ended=55, code=143)] * 2,
        hosts={"algo-1": HostTimeline(stopping=50, ended=58)},
    )
    assert spent(made(stopped, ended=61)) == {
        "launch": 5,
        "first_step": 5,
        "steps": 39,
        "lost_steps": 1,
        "end": 10,
        "outputs": 1,
    }


def test_a_rank_that_counts_nothing_trains_while_the_others_do():
    whole = attempt(1, 0, 100, [rank(10, (20, 80), ended=90), rank(10, ended=90)])
    assert made(whole).seconds["steps"] == 60


def test_in_a_job_with_steps_each_process_of_a_rank_has_a_first_one():
    whole = attempt(1, 0, 100, [rank(0, (10, 40), (60, 100), ended=100)] * 2)
    assert spent(made(whole)) == {"first_step": 30, "steps": 70}


def test_without_marks_lines_with_metrics_tell_the_steps_and_without_those_the_output():
    output = Span(12, 90)
    by_metrics = attempt(1, 0, 100, [rank(10, ended=95, output=output, metrics=Span(20, 80)), rank(10, ended=95)])
    assert (made(by_metrics).source, made(by_metrics).seconds["steps"]) == ("metrics", 60)
    by_output = attempt(1, 0, 100, [rank(10, ended=95, output=output), rank(10, ended=95)])
    found = made(by_output)
    assert (found.source, found.seconds["steps"], found.seconds["unattributed"]) == ("output", 78, 5)
    assert "steps 78 s of 100 s, by the first and the last line of output" in found.sentence()


def test_a_rank_that_writes_little_trains_while_the_output_of_another_goes_on_and_no_longer_than_it_runs():
    ranks = [rank(10, ended=95, output=Span(12, 90)), rank(10, ended=60, output=Span(14, 14))]
    found = made(attempt(1, 0, 100, ranks))
    assert found.seconds["steps"] == (78 + 48) / 2
    assert found.seconds["unattributed"] == 2.5
    assert found.seconds["ranks_missing"] == 35 / 2


def test_a_hang_is_unnoticed_since_the_last_rank_has_moved():
    found = Verdict(Kind.DEADLOCK, "a deadlock is suspected")
    stuck = attempt(1, 0, 100, [rank(0, (10, 30), ended=95), rank(0, (10, 40), ended=95)], found, failure_found=90.0)
    assert made(stuck).seconds["notice"] == 50


def test_a_host_that_is_lost_is_noticed_within_the_bound_of_the_law():
    found = Verdict(Kind.HOST_LOST, "algo-2 is gone", "algo-2")
    lost = attempt(1, 0, 100, [rank(0, (10, 30))] * 2, found, failure_found=90.0)
    assert made(lost).seconds["notice"] == 5


def test_a_failure_before_the_script_is_a_part_of_the_launch():
    found = Verdict(Kind.REQUIREMENTS, "pip could not install the code's requirements")
    early = attempt(
        1, 0, 30, [RankTimeline()] * 2, found, hosts={"algo-1": HostTimeline(Span(5, 20), ended=25)}, failure_found=20.0
    )
    assert spent(made(early, ended=30)) == {"launch": 5, "requirements": 15, "end": 10}


def test_what_is_not_known_is_unattributed():
    vanished = attempt(1, 0, None, [rank(5, (10, 40))] * 2)
    assert spent(made(vanished)) == {"launch": 5, "first_step": 5, "steps": 30, "unattributed": 60}


def test_a_job_without_any_attempt_has_a_ledger():
    assert spent(made(ended=3.0)) == {"unattributed": 3}


def test_a_job_that_has_ended_at_once_divides_by_nothing():
    assert made(ended=0.0).goodput == 0.0


def test_the_json_has_all_phases_and_attempts():
    document = made(FAILED, AGAIN).to_json()
    assert document["goodput"] == 0.65 and document["from"] == "steps" and document["wall"] == 100
    assert list(document["seconds"]) == list(PHASES)
    assert document["attempts"][0] == {"number": 1, "seconds": 46, "steps": 20, "why": KILLED.message}
