"""What a host makes of its part in a job."""

import pytest
from estimator_container.contract.names import HOSTS_PER_MACHINE, Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.host.spec import FEW_RANKS, HostSpec
from estimator_container.mesh.pulse import MISSED_BEATS, PATIENT_BEATS
from estimator_container.runtime import machine
from estimator_container.worlds.mpi.world import MpiWorld


@pytest.mark.parametrize(
    ("ranks", "hosts_per_machine", "cpus", "lacks"),
    [(FEW_RANKS, 1, 1, False), (FEW_RANKS + 1, 1, 1, True), (16, 1, 2, True), (16, 1, 16, False), (4, 3, 2, True)],
)
def test_a_host_with_many_ranks_to_a_cpu_has_more_patience_with_others(
    tmp_path, monkeypatch, ranks, hosts_per_machine, cpus, lacks
):
    monkeypatch.setattr(machine, "cpus", lambda: cpus)
    given = {
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": str(ranks),
    }
    resources = {"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}
    variables = {HOSTS_PER_MACHINE: str(hosts_per_machine)}
    settings = Settings.from_documents(Layout(str(tmp_path)), resources, {}, Hyperparameters.read(given), variables)
    spec = HostSpec.from_settings(settings, b"secret")
    assert isinstance(spec.world, MpiWorld)
    assert spec.lacks_cpus is lacks
    assert spec.missed_beats == (PATIENT_BEATS if lacks else MISSED_BEATS)
