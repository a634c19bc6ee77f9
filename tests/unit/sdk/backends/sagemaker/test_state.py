from datetime import datetime, timezone

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.sagemaker.state import ServiceState, hosts_of, verdict_of

TOOLKITS = "rank 3 on algo-2 was killed by SIGKILL"


@pytest.mark.parametrize(
    ("failure", "kind", "message", "exit_code", "detail"),
    [
        ("AlgorithmError: oh, exit code: 1", "exit_code", "oh", 1, ""),
        ("AlgorithmError: exit code: 137", "exit_code", "the service gives no reason", 137, ""),
        (
            "AlgorithmError: UserScriptError:\nExitCode 1, exit code: 1",
            "exit_code",
            "UserScriptError:",
            1,
            "ExitCode 1",
        ),
        ("ClientError: Download failed: denied", "configuration", "ClientError: Download failed: denied", None, ""),
        ("InternalServerError: We encountered", "platform", "InternalServerError: We encountered", None, ""),
        ("CapacityError: no ml.p4d", "platform", "CapacityError: no ml.p4d", None, ""),
        ("something new", "platform", "something new", None, ""),
        ("", "platform", "the service gives no reason", None, ""),
        (f"AlgorithmError: {TOOLKITS}\n\nlast words, exit code: 1", "exit_code", TOOLKITS, 1, "last words"),
    ],
)
def test_a_failure_reason_becomes_a_verdict(failure, kind, message, exit_code, detail):
    verdict = verdict_of(failure)
    assert (verdict.kind, verdict.exit_code, verdict.detail) == (kind, exit_code, detail)
    assert verdict.message == message


@pytest.mark.parametrize(
    ("sentence", "rank", "host", "code"),
    [
        ("rank 3 on algo-2 exited with code 7: ValueError: a, b", 3, "algo-2", 7),
        ("rank 12 on algo-10 was killed by SIGKILL", 12, "algo-10", None),
        ("the script on algo-1 exited with code 2", None, "algo-1", 2),
    ],
)
def test_the_toolkits_own_sentence_says_who_it_was(sentence, rank, host, code):
    verdict = verdict_of(f"AlgorithmError: {sentence}, exit code: 1")
    assert (verdict.message, verdict.rank, verdict.host) == (sentence, rank, host)
    assert verdict.exit_code == (code or 1)


@pytest.mark.parametrize("kind", ["exception", "out_of_memory", "deadlock", "requirements", "mpi"])
def test_a_verdict_of_the_toolkit_comes_back_with_its_kind_and_its_words(kind):
    given = Verdict(kind, "rank 3 on algo-2 exited with code 1: oh", "algo-2", 3, 1, detail="Traceback:\n  oh")
    verdict = verdict_of(f"AlgorithmError: {given.failure_text()}, exit code: 1")
    assert verdict == given and verdict.text() == given.text()


@pytest.mark.parametrize(
    ("status", "secondary", "reason"),
    [
        ("Stopped", "MaxRuntimeExceeded", "it ran for longer than max_run"),
        ("Stopped", "MaxWaitTimeExceeded", "it waited and ran for longer than max_wait"),
        ("Stopped", "Interrupted", "its spot instances were taken away"),
        ("Stopping", "Stopping", "it was asked to stop"),
        ("Completed", "Completed", ""),
        ("Stopped", "Tomorrow", ""),
    ],
)
def test_a_secondary_status_is_said_in_words(status, secondary, reason):
    description = {"TrainingJobName": "a", "TrainingJobStatus": status, "SecondaryStatus": secondary}
    state = ServiceState.from_description(description)
    assert (state.reason, state.is_final) == (reason, status != "Stopping")


def test_a_job_without_an_end_of_training_ended_when_it_was_last_changed():
    changed = datetime(2026, 1, 31, tzinfo=timezone.utc)
    description = {"TrainingJobName": "a", "TrainingJobStatus": "Failed", "LastModifiedTime": changed}
    assert ServiceState.from_description(description).ended == changed.timestamp()
    assert ServiceState.from_description({**description, "TrainingJobStatus": "InProgress"}).ended is None


def test_the_hosts_of_all_groups_are_numbered_in_one_row():
    groups = [{"InstanceCount": 1}, {"InstanceCount": 2}]
    assert hosts_of({"InstanceGroups": groups}) == ("algo-1", "algo-2", "algo-3")
    assert (hosts_of({"InstanceCount": 2}), hosts_of({})) == (("algo-1", "algo-2"), ("algo-1",))
