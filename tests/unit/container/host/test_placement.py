"""On which CPUs the ranks of a host run; those of this machine are split into two halves, each near a GPU."""

import os

import pytest
from estimator_container.contract.names import GPU_SHARE, HOSTS_PER_MACHINE, Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.host import gpus
from estimator_container.host.placement import cpus_of_ranks
from estimator_container.host.spec import HostSpec
from estimator_container.logs.frames import SPAWNED
from estimator_container.runtime import machine

NEAR = {"GPU-a": frozenset({0, 1}), "GPU-b": frozenset({2, 3})}
MPI = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2"}
DIRECT = {"sagemaker_torch_distributed_enabled": "true", "sagemaker_torch_distributed_processes_per_host": "2"}


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(machine, "cpus", lambda: 4)
    monkeypatch.setattr(machine, "_taken", [2])
    monkeypatch.setattr(gpus, "near_cpus", lambda: NEAR)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b,GPU-a")
    monkeypatch.delenv(GPU_SHARE, raising=False)


@pytest.fixture
def host(tmp_path):
    def of(hyperparameters, name="algo-1", hosts=("algo-1", "algo-2"), per_machine=1):
        resources = {"current_host": name, "hosts": list(hosts)}
        given, variables = Hyperparameters.read(hyperparameters), {HOSTS_PER_MACHINE: str(per_machine)}
        settings = Settings.from_documents(Layout(str(tmp_path)), resources, {}, given, variables)
        return cpus_of_ranks(HostSpec.from_settings(settings, b"secret"))

    return of


def test_a_rank_keeps_to_the_cpus_near_its_gpu(host):
    cpus = host(MPI, name="algo-2")
    assert [set(cpus(rank, local)) for rank, local in ((2, 0), (3, 1))] == [{2, 3}, {0, 1}]
    assert not cpus(SPAWNED + 1, 0)


def test_so_does_one_that_its_host_starts_itself(host):
    cpus = host(DIRECT, name="algo-2")
    assert [set(cpus(rank, 0)) for rank in (2, 3)] == [{2, 3}, {0, 1}]


def test_the_user_may_place_the_ranks(host):
    cpus = host({**MPI, "sagemaker_mpi_custom_mpi_options": "-bind-to none"})
    assert not cpus(0, 0)


def test_hosts_of_one_machine_keep_to_theirs_if_they_share_its_gpus(host, monkeypatch):
    monkeypatch.setattr(machine, "_taken", [1])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
    assert not host({}, per_machine=2)(-1, 0)
    monkeypatch.setenv(GPU_SHARE, "0/2")
    assert host({}, per_machine=2)(-1, 0) == {0, 1}
    assert not host({}, hosts=("algo-1",))(-1, 0)  # what is alone on its machine has all CPUs


def test_where_all_cpus_are_near_none_are_set_apart(host, monkeypatch):
    monkeypatch.setattr(gpus, "near_cpus", lambda: dict.fromkeys(NEAR, frozenset(range(4))))
    assert not host(MPI)(0, 0)


def test_where_there_are_more_ranks_than_gpus_none_are_set_apart(host, monkeypatch):
    monkeypatch.setattr(machine, "_taken", [1])
    assert not host(MPI)(0, 0)
