"""The first host, as it decides what follows from what happens on the others."""

from pathlib import Path
from types import SimpleNamespace

from estimator_container.contract.names import Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.failures.verdict import of_lost_host
from estimator_container.host.coordination.leader import Leader
from estimator_container.host.coordination.mpirun import Mpirun
from estimator_container.host.coordination.restart import Restart
from estimator_container.host.spec import HostSpec
from estimator_container.worlds.mpi.launch_agents import LaunchAgents

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


def test_no_host_is_asked_for_a_daemon_after_it_was_told_to_clear(loop, tmp_path):
    """mpirun asks at the moment at which another host is lost: the daemon would fail in the attempt that follows."""
    documents = {"sagemaker_mpi_enabled": "true"}
    resources = {"current_host": "algo-1", "hosts": list(HOSTS)}
    settings = Settings.from_documents(Layout(str(tmp_path)), resources, {}, Hyperparameters.read(documents), {})
    host = SimpleNamespace(
        spec=HostSpec.from_settings(settings, b"the secret of this job"),
        toolkit=SimpleNamespace(loop=loop, events=SimpleNamespace(emit=lambda event: None)),
        outcome=None,
        stopping=False,
        platform=None,
        end_attempt=lambda found: None,
        end=lambda outcome: None,
    )
    leader, mesh = Leader(host), Mesh()
    leader._begin_step(0)
    leader._others._mesh = mesh
    line = SimpleNamespace(expect=lambda on_again, on_end: None)
    leader._restart = Restart(host, line, leader._others, lambda: None, lambda outcome: None)
    run = leader._run
    run.ready.update(HOSTS)
    run.mpirun = Mpirun(host.spec, host.toolkit, host.spec.world, run.ready, leader._others.ask_for_daemon)
    agents = Path(tmp_path, "agents")
    run.mpirun._agents = LaunchAgents(loop, str(agents), list(run.mpirun._nodes)[1:], run.mpirun._on_request)

    def ask(node):
        (agents / f"{node}.request").write_text("orted")
        with (agents / "asked").open("w") as asked:
            print(node, file=asked)

    ask("algo-3")
    loop.run_until(lambda: mesh.told, 60)
    ask("algo-2")
    leader.report(of_lost_host("algo-3", "algo-1"))
    loop.run_until(lambda: False, 0.1)
    assert mesh.told == ["algo-3: daemon", "clear"]
