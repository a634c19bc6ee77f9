import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk.backends.slurm import queue
from estimator_sdk.backends.slurm.allocation import nodes
from estimator_sdk.backends.slurm.allocation.nodes import Node, SlurmAllocation, _node
from estimator_sdk.backends.supervised.supervisor.surroundings import Interruption
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


@pytest.fixture
def slurm(allocation, monkeypatch):
    """Makes what Slurm gave a job of which it says `said` once it has not answered so often, and what it is told."""

    def made(said, silent_times=0, for_good=False):
        told, asked = [], []

        def ask(*command, **_):
            if "show" not in command:
                return told.append(" ".join(command))
            asked.append(command)
            if for_good or len(asked) <= silent_times:
                raise BackendError("scontrol says: Unable to contact slurm controller")
            return said

        monkeypatch.setattr(nodes, "ANSWER_SECONDS", 0.1 if for_good else 60.0)
        monkeypatch.setattr(nodes, "ASK_AGAIN_SECONDS", 0.01)
        found = allocation()
        monkeypatch.setattr(queue, "ask", ask)
        return found, told

    return made


def test_an_interruption_that_slurm_does_not_explain_at_once_is_asked_about_again(slurm):
    job, _ = slurm("JobId=4711 JobState=TIMEOUT Reason=None Restarts=0", silent_times=2)
    assert job.interruption() == Interruption("job 4711 of Slurm reached Slurm's time limit")


def test_an_interruption_that_slurm_does_not_explain_ends_nothing_for_good(slurm):
    job, _ = slurm("", for_good=True)
    reason = "job 4711 of Slurm was taken off its nodes, and Slurm does not say why"
    assert job.interruption() == Interruption(reason, comes_again=True)


def test_hosts_of_which_slurm_says_nothing_at_first_are_taken_as_it_says_then(slurm):
    assert slurm("JobId=4711 JobState=COMPLETING PreemptTime=None", silent_times=1)[0].is_taken()


def test_hosts_of_which_slurm_says_nothing_are_not_taken(slurm):
    assert not slurm("", for_good=True)[0].is_taken()


@pytest.mark.parametrize(
    ("lists", "update"),
    [
        ("ReqNodeList=(null) ExcNodeList=(null)", ["scontrol update JobId=4711 ExcNodeList=n3"]),
        ("ReqNodeList=(null) ExcNodeList=n7,n8", ["scontrol update JobId=4711 ExcNodeList=n3,n7,n8"]),
        ("ReqNodeList=n[1-3] ExcNodeList=(null)", []),
    ],
)
def test_a_job_that_lost_a_node_is_started_on_others_unless_it_asks_for_that_one(slurm, lists, update):
    """What it was submitted with holds even where Slurm does not tell it at once."""
    job, told = slurm(f"JobId=4711 JobState=RUNNING {lists}", silent_times=1)
    job.lose(Node("n3", "127.0.0.3", "m2"))
    job.ask_for_others()
    assert told == ["scontrol requeue 4711", *update]


def test_the_nodes_that_a_job_asks_for_are_left_as_they_are_where_slurm_does_not_name_them(slurm):
    job, told = slurm("", for_good=True)
    job.lose(Node("n3", "127.0.0.3", "m2"))
    job.ask_for_others()
    assert told == ["scontrol requeue 4711"]


def test_the_nodes_that_slurm_does_not_name_at_once_are_asked_for_again(slurm):
    job, _ = slurm(NODES, silent_times=2)
    assert [node.name for node in job.nodes] == ["n2", "n1", "n3"]


def test_nodes_that_slurm_does_not_name_are_not_known(slurm):
    with pytest.raises(BackendError, match="Unable to contact"):
        assert slurm("", for_good=True)[0].nodes
