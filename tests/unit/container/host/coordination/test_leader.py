"""The first host, as it decides what follows from what happens on the others."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.contract.names import Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.failures.kind import Kind
from estimator_container.failures.outcome import Outcome
from estimator_container.failures.verdict import Verdict, of_lost_host, of_silent_host
from estimator_container.host.coordination.leader import Leader
from estimator_container.host.coordination.mpirun import Mpirun
from estimator_container.host.coordination.restart import Restart
from estimator_container.host.spec import HostSpec
from estimator_container.mesh.pulse import Loss
from estimator_container.ranks.server import RankEnd
from estimator_container.worlds.mpi.launch_agents import LaunchAgents

from tests.waiting import SECONDS

HOSTS = ("algo-1", "algo-2", "algo-3")


class Mesh:
    """Says what the others were told."""

    missing = ()

    def __init__(self):
        self.told = []

    def broadcast(self, *fields):
        self.told.append(fields[0])

    def send(self, host, *fields):
        self.told.append(f"{host}: {fields[0]}")


@pytest.fixture
def leader(loop, tmp_path):
    """The first of three hosts that are all ready, where another attempt may follow."""
    return leader_of(HOSTS, loop, tmp_path)


def leader_of(hosts, loop, tmp_path):
    documents = {"sagemaker_mpi_enabled": "true"}
    resources = {"current_host": "algo-1", "hosts": list(hosts)}
    settings = Settings.from_documents(Layout(str(tmp_path)), resources, {}, Hyperparameters.read(documents), {})
    host = SimpleNamespace(
        spec=HostSpec.from_settings(settings, b"the secret of this job"),
        toolkit=SimpleNamespace(
            loop=loop,
            events=SimpleNamespace(emit=lambda event: None),
            children=SimpleNamespace(reap_ending=lambda: None),
        ),
        outcome=None,
        stopping=False,
        has_scheduler=False,
        platform=None,
        asked=[],
        end_attempt=lambda found: None,
        end=lambda outcome: None,
    )
    made = Leader(host)
    made._begin_step(0)
    made._others._mesh = Mesh()
    line = SimpleNamespace(
        expect=lambda on_again, on_end: None,
        ask=lambda found, address, lost: host.asked.append((found.host, lost)),
    )
    made._restart = Restart(host, line, made._others, lambda: None, lambda outcome: None)
    made._run.ready.update(hosts)
    return made


def test_all_hosts_that_are_silent_are_lost_though_one_is_blamed(leader, monkeypatch):
    """As two of a machine that has no power any more: what is left of neither is waited for."""
    monkeypatch.setattr(leader._others, "expect", lambda lost: "10.0.0.1:4711")
    for host in ("algo-2", "algo-3"):
        leader.host_lost(host, Loss.SILENT)
    leader.report(of_silent_host("algo-2", "algo-1", 2.5))
    leader.host_cleared("algo-1")
    assert leader._host.asked == [("algo-2", ["algo-2", "algo-3"])]


def test_no_host_is_asked_for_a_daemon_after_it_was_told_to_clear(leader, loop, tmp_path):
    """mpirun asks at the moment at which another host is lost: the daemon would fail in the attempt that follows."""
    host, mesh = leader._host, leader._others._mesh
    run = leader._run
    run.mpirun = Mpirun(host.spec, host.toolkit, host.spec.world, run.ready, leader._others.ask_for_daemon)
    agents = Path(tmp_path, "agents")
    run.mpirun._agents = LaunchAgents(loop, str(agents), list(run.mpirun._nodes)[1:], run.mpirun._on_request)

    def ask(node):
        (agents / f"{node}.request").write_text("orted")
        with (agents / "asked").open("w") as asked:
            print(node, file=asked)

    ask("algo-3")
    loop.run_until(lambda: mesh.told, SECONDS)
    ask("algo-2")
    leader.report(of_lost_host("algo-3", "algo-1"))
    loop.run_until(lambda: False, 0.1)
    assert mesh.told == ["algo-3: daemon", "clear"]


@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[:1]])
def test_a_rank_that_misses_a_connection_is_blamed_at_once_only_where_it_is_the_only_one(loop, tmp_path, hosts):
    """Others may be about to say why it is missing."""
    leader = leader_of(hosts, loop, tmp_path)
    words = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nBrokenPipeError: Broken pipe\n'
    leader.host_rank_ended("algo-1", RankEnd(0, 1, False, words))
    assert leader.is_ending_attempt is (len(hosts) == 1)


def test_nothing_is_begun_again_once_the_job_has_an_outcome(leader):
    leader._host.outcome = Outcome("failed", Verdict(Kind.TOOLKIT, "the toolkit on algo-2 failed", "algo-2"))
    leader.report(of_lost_host("algo-3", "algo-1"))
    assert leader._others._mesh.told == []


@pytest.mark.parametrize(("kind", "counts"), [(Kind.DEADLOCK, False), (Kind.EXCEPTION, False), (Kind.TOOLKIT, True)])
def test_no_failure_of_the_script_ends_ranks_that_save_because_the_job_stops(leader, kind, counts):
    outcomes = []
    leader._host.stopping, leader._host.end = True, outcomes.append
    leader.report(Verdict(kind, "something failed on algo-2", "algo-2"))
    assert [outcome.kind for outcome in outcomes] == ["failed"] * counts


def test_a_stop_that_comes_when_all_ranks_have_ended_ends_the_job(leader):
    """As on a machine whose scheduler has signalled the ranks of all hosts before the first host's toolkit."""
    outcomes = []
    leader._host.end, leader._killed._has_scheduler = outcomes.append, True
    leader._run.rank_ended("algo-1", RankEnd(0, 1, False, "Connection closed by peer"))
    leader._run.rank_ended("algo-2", RankEnd(1, 1, False, "Connection closed by peer"))
    leader.host_rank_ended("algo-3", RankEnd(2, -15, False, ""))
    assert outcomes == []
    leader._host.stopping = True
    leader.stop()
    assert [outcome.kind for outcome in outcomes] == ["stopped"]


def test_a_daemon_that_has_lost_mpirun_is_not_blamed_though_its_word_is_read_first(leader):
    """Both news have come when this host, which was held up, looks again."""
    found = []
    leader._host.end_attempt = found.append
    leader._run.mpirun = SimpleNamespace(last_words=lambda: "", close=lambda: None)
    leader._host.toolkit.children.reap_ending = lambda: leader._mpirun_ended(-9)
    daemon = Verdict(Kind.MPI, "the MPI daemon on algo-2 ended with 1 in the middle of the job", "algo-2")
    leader._others.on_message("algo-2", ["failed", daemon.to_json()])
    assert [(each.kind, each.host) for each in found] == [(Kind.MPI, "algo-1")]
