import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk.backends.slurm import queue
from estimator_sdk.backends.slurm.allocation import nodes
from estimator_sdk.backends.slurm.allocation.nodes import Node, SlurmAllocation, _node
from estimator_sdk.errors import BackendError

NODES = """\
NodeName=n1 Arch=x86_64 NodeAddr=127.0.0.1 NodeHostName=m1 State=IDLE OS=Linux 6.1 #1 SMP
NodeName=n2 NodeAddr=127.0.0.2 NodeHostName=m1 State=DOWN*
NodeName=n3 NodeAddr=127.0.0.3 NodeHostName=m2 State=IDLE

"""


@pytest.fixture
def allocation(monkeypatch):
    """Makes what Slurm gave a job, and what Slurm says of it now."""

    def made(said="", restarts=None):
        monkeypatch.setenv("SLURM_JOB_ID", "4711")
        monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
        monkeypatch.setenv("SLURMD_NODENAME", "n2")
        monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
        if restarts is not None:
            monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
        monkeypatch.setattr(queue, "ask", lambda *command, **_: said)
        return SlurmAllocation({})

    return made


def test_a_node_is_known_by_its_name_its_address_and_its_machine():
    assert _node({"NodeName": "n1", "NodeAddr": "127.0.0.1", "NodeHostName": "m1"}) == Node("n1", "127.0.0.1", "m1")


def test_a_node_of_which_slurm_says_only_the_name_is_found_by_it():
    assert _node({"NodeName": "localhost"}) == Node("localhost", "127.0.0.1", "localhost")


def test_the_node_of_the_supervisor_comes_first(allocation):
    assert [node.name for node in allocation(NODES).nodes] == ["n2", "n1", "n3"]


@pytest.mark.parametrize(
    ("said", "restarts"),
    [
        ("JobId=4711 JobState=PENDING Reason=BeginTime Restarts=1", None),
        ("JobId=4711 JobState=REQUEUED Reason=None Restarts=0", None),
        ("JobId=4711 JobState=COMPLETING Reason=None Restarts=2", "1"),
    ],
)
def test_a_job_that_is_in_the_queue_again_comes_again(allocation, said, restarts):
    assert allocation(said, restarts).interruption().comes_again


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("JobId=4711 JobState=RUNNING PreemptTime=None StartTime=2026-11-25T09:43:28", False),
        ("JobId=4711 JobState=RUNNING PreemptTime=2026-11-25T09:43:30 StartTime=2026-11-25T09:43:28", True),
        ("JobId=4711 JobState=COMPLETING PreemptTime=None", True),
        ("JobId=4711 JobState=REQUEUED PreemptTime=None", True),
        ("JobId=4711 JobState=CANCELLED PreemptTime=None", True),
        ("", False),
    ],
)
def test_hosts_are_taken_once_slurm_ends_the_job_or_is_about_to(allocation, said, taken):
    """Of its nodes, that of the supervisor may be the last to be signalled."""
    assert allocation(said).is_taken() is taken


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("JobId=4711 JobState=COMPLETING Reason=TimeLimit Restarts=0", "reached Slurm's time limit"),
        ("JobId=4711 JobState=TIMEOUT Reason=None Restarts=0", "reached Slurm's time limit"),
        ("JobId=4711 JobState=CANCELLED Reason=None Restarts=0", "was cancelled"),
        ("JobId=4711 JobState=RUNNING Reason=None Restarts=0", "was cancelled"),
    ],
)
def test_a_job_that_a_limit_or_somebody_ends_is_stopped(allocation, said, words):
    found = allocation(said).interruption()
    assert words in found.reason
    assert (found.comes_again, found.verdict) == (False, None)


def test_starts_before_this_one_are_none_of_its_interruption(allocation):
    assert not allocation("JobId=4711 JobState=CANCELLED Reason=None Restarts=1", "1").interruption().comes_again


def test_a_job_that_is_preempted_for_good_has_failed_by_that(allocation):
    found = allocation("JobId=4711 JobState=PREEMPTED Reason=None Restarts=0").interruption()
    assert found.verdict.kind is Kind.PREEMPTED
    assert "requeue" in found.verdict.message


@pytest.mark.parametrize("state", ["JobState=NODE_FAIL Reason=None", "JobState=COMPLETING Reason=NodeDown"])
def test_a_job_that_ends_for_good_with_a_node_has_failed_by_that(allocation, state):
    found = allocation(f"JobId=4711 {state} Restarts=0").interruption()
    assert found.verdict.kind is Kind.HOST_LOST


@pytest.mark.parametrize(
    ("silent_times", "comes_again", "reason"),
    [
        (2, False, "job 4711 of Slurm reached Slurm's time limit"),
        (1000, True, "job 4711 of Slurm was taken off its nodes, and Slurm does not say why"),
    ],
)
def test_an_interruption_that_slurm_does_not_explain_is_asked_about_again_and_ends_nothing_for_good(
    allocation, monkeypatch, silent_times, comes_again, reason
):
    monkeypatch.setattr(nodes, "EXPLAIN_SECONDS", 60.0 if silent_times < 10 else 0.6)
    made, asked = allocation(), []

    def silent(*command, **_):
        asked.append(command)
        if len(asked) <= silent_times:
            raise BackendError("scontrol says: Unable to contact slurm controller")
        return "JobId=4711 JobState=TIMEOUT Reason=None Restarts=0"

    monkeypatch.setattr(queue, "ask", silent)
    found = made.interruption()
    assert (found.comes_again, found.reason, found.verdict) == (comes_again, reason, None)
