import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.supervised.supervisor.policy import AttemptEnd, Decision, Rules
from estimator_sdk.spec.restart_policy import RestartPolicy

OF_THE_PLATFORM = ["host_lost", "host_missing", "frozen", "platform"]
OF_THE_USER = [
    "exit_code",
    "exception",
    "signal",
    "configuration",
    "requirements",
    "checkpoints",
    "toolkit",
    "unheard_of",
]
AGAIN, NOT_AGAIN = Decision(True), Decision(False)


def traceback(line, host="algo-1"):
    where = f'File "/job/hosts/{host}/code/train.py", line {line}, in <module>'
    return f"Traceback (most recent call last):\n  {where}\nValueError: no such digit\n"


def end(kind="signal", at=0.0, began_from=None, newest=None, seconds=0.0, **facts):
    return AttemptEnd(Verdict(kind, "rank 1 on algo-1 failed", **facts), at, began_from, newest, seconds)


@pytest.mark.parametrize("kind", OF_THE_PLATFORM)
@pytest.mark.parametrize(
    ("attempts", "limit", "again"), [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False)]
)
def test_what_the_platform_broke_is_tried_again_so_many_times(kind, attempts, limit, again):
    assert Rules(limit).decide([end(kind)] * attempts) == Decision(again)


@pytest.mark.parametrize("kind", OF_THE_USER)
def test_what_the_script_broke_it_would_break_again(kind):
    assert Rules(30).decide([end(kind)]) == NOT_AGAIN


def test_a_policy_tries_again_what_it_names_and_nothing_else():
    rules = Rules(policy=RestartPolicy(("signal",), max=2))
    assert rules.decide([end("signal")]) == AGAIN
    assert rules.decide([end("signal", detail=traceback(1)), end("signal", detail=traceback(2))]) == AGAIN
    assert rules.decide([end("signal", detail=traceback(line)) for line in range(3)]) == NOT_AGAIN
    assert rules.decide([end("exception")]) == NOT_AGAIN


def test_failures_of_the_platform_and_of_the_script_are_counted_apart():
    rules = Rules(1, RestartPolicy(("signal",), max=1))
    lost, killed = end("host_lost"), end("signal")
    assert rules.decide([lost, killed]) == AGAIN
    assert rules.decide([lost, killed, lost]) == NOT_AGAIN
    assert rules.decide([killed, lost, killed]) == NOT_AGAIN


def test_only_what_failed_within_the_window_counts():
    rules = Rules(policy=RestartPolicy(("signal",), max=1, within=60))
    assert rules.decide([end(at=0.0), end(at=61.0)]) == AGAIN
    assert rules.decide([end(at=0.0), end(at=59.0)]) == NOT_AGAIN


def test_waiting_doubles_as_long_as_no_checkpoint_is_newer():
    rules = Rules(policy=RestartPolicy(("signal",), max=100, backoff=10))
    vain, well = end(began_from="1", newest="1"), end(began_from="1", newest="2")
    assert rules.decide([vain]).seconds == 10
    assert rules.decide([well, vain, vain]).seconds == 20
    assert rules.decide([vain, vain, well]).seconds == 10
    ends = [end(detail=traceback(line)) for line in range(40)]  # of a job without checkpoints
    assert rules.decide(ends).seconds == 3600


def test_a_script_that_asks_for_no_other_attempt_gets_none():
    found = Rules(policy=RestartPolicy(("exit_code",))).decide([end("exit_code", exit_code=93)])
    assert found == Decision(False, why_not="exit code 93 rules out another attempt")


@pytest.mark.parametrize("code", [126, 127])
def test_a_script_that_never_started_is_not_tried_again(code):
    found = Rules(policy=RestartPolicy(("exit_code",))).decide([end("exit_code", exit_code=code)])
    assert not found.again and "could not be started" in found.why_not


def test_three_ends_at_the_same_place_are_enough_whichever_rank_it_was():
    rules = Rules(policy=RestartPolicy(("exception",), max=30))
    same = [end("exception", rank=rank, detail=traceback(7, f"algo-{rank}")) for rank in range(3)]
    assert rules.decide(same[:2]) == AGAIN
    assert rules.decide(same) == Decision(False, why_not="3 attempts in a row have ended at the same place")
    assert rules.decide([*same[:2], end("exception", detail=traceback(8))]) == AGAIN


def test_a_crash_at_the_same_place_that_gets_further_each_time_is_no_loop():
    ends = [end("exception", began_from=str(n), newest=str(n + 1), detail=traceback(7)) for n in range(3)]
    assert Rules(policy=RestartPolicy(("exception",), max=30)).decide(ends) == AGAIN


def test_three_attempts_that_leave_no_newer_checkpoint_are_enough():
    ends = [end("exception", began_from="1", newest="1", detail=traceback(line)) for line in range(3)]
    found = Rules(policy=RestartPolicy(("exception",), max=30)).decide(ends)
    assert found == Decision(False, why_not="3 attempts in a row have left no newer checkpoint")


NO_NEWER = Decision(False, why_not="3 attempts in a row have left no newer checkpoint")
WITH_TIME = end("host_lost", began_from="0", newest="1", seconds=60.0)


def nowhere(kind="host_lost", seconds=10.0, line=1):
    return end(kind, began_from="1", newest="1", seconds=seconds, detail=traceback(line))


@pytest.mark.parametrize("kind", OF_THE_PLATFORM)
def test_what_the_platform_failed_before_there_could_be_a_checkpoint_does_not_count(kind):
    assert Rules(30).decide([WITH_TIME, *[nowhere(kind, seconds=59.0)] * 9]) == AGAIN
    assert Rules(30).decide([WITH_TIME, *[nowhere(kind, seconds=60.0)] * 3]) == NO_NEWER
    assert Rules(2).decide([WITH_TIME, *[nowhere(kind)] * 2]) == NOT_AGAIN  # the limit counts it all the same


def test_the_quickest_attempt_with_a_newer_checkpoint_says_how_long_one_takes():
    quick = end("host_lost", began_from="1", newest="2", seconds=5.0)
    assert Rules(30).decide([WITH_TIME, quick, *[nowhere()] * 3]) == NO_NEWER
    assert Rules(30).decide([quick, WITH_TIME, *[nowhere()] * 3]) == NO_NEWER


def test_where_no_attempt_has_left_a_newer_checkpoint_all_count():
    assert Rules(30).decide([nowhere()] * 2) == AGAIN
    assert Rules(30).decide([nowhere()] * 3) == NO_NEWER


def test_a_script_that_fails_soon_counts_and_what_the_platform_failed_between_does_not_clear_it():
    rules = Rules(30, RestartPolicy(("exception",), max=30))
    failed = [nowhere("exception", line=line) for line in range(3)]
    assert rules.decide([WITH_TIME, *failed]) == NO_NEWER
    assert rules.decide([WITH_TIME, *failed[:2], nowhere()]) == AGAIN
    assert rules.decide([WITH_TIME, *failed[:2], nowhere(), failed[2]]) == NO_NEWER


def test_what_is_preempted_is_tried_again_where_anything_is_and_counts_for_nothing():
    taken = end("preempted", began_from="1", newest="1")
    assert Rules().decide([taken]) == NOT_AGAIN
    assert Rules(1).decide([taken] * 50) == AGAIN
    lost = end("host_lost", began_from="1", newest="1")
    assert Rules(2).decide([lost, taken, taken, lost]) == AGAIN
    assert Rules(2).decide([lost, taken, lost, lost]) == NOT_AGAIN


def test_hosts_that_are_lost_again_and_again_are_no_crash_loop_of_the_script():
    assert Rules(30).decide([end("host_lost")] * 5) == AGAIN
