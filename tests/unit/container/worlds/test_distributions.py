import json

import pytest
from estimator_container.contract.reserved import Reserved
from estimator_container.contract.settings import Restarts
from estimator_container.contract.steps import Step
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.distributions import (
    multi_worker_mirrored_strategy,
    name_of,
    parameter_server,
    torch_distributed,
    world,
)
from estimator_container.worlds.mpi.world import MpiWorld

HOSTS = ("algo-1", "algo-2")
ENDPOINTS = ["10.0.0.1:40001", "10.0.0.2:40002"]
MPI = {"sagemaker_mpi_enabled": True}
TORCH = {"sagemaker_torch_distributed_enabled": True}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
TWO = {"sagemaker_mpi_num_of_processes_per_host": 2}


@pytest.mark.parametrize(
    ("hyperparameters", "gpus", "expected"),
    [
        ({}, 8, None),
        ({"sagemaker_mpi_enabled": False}, 0, None),
        ({"sagemaker_torch_distributed_enabled": None}, 0, None),
        (TWO, 0, None),
        (MPI, 0, MpiWorld(HOSTS, 1)),
        (TORCH, 0, torch_distributed.TorchWorld(HOSTS, 1)),
        (TORCH, 8, torch_distributed.TorchWorld(HOSTS, 8)),
        ({**TORCH, **TWO}, 8, torch_distributed.TorchWorld(HOSTS, 2)),
        (MIRRORED, 8, multi_worker_mirrored_strategy.MirroredWorld(HOSTS, 1)),
        ({**MPI, "sagemaker_torch_distributed_enabled": False}, 4, MpiWorld(HOSTS, 4)),
    ],
)
def test_the_world_that_is_asked_for(hyperparameters, gpus, expected):
    assert world(Reserved.read(hyperparameters), HOSTS, gpus) == expected


@pytest.mark.parametrize("text", [True, "True", "true"])
def test_what_the_sdk_and_people_write_for_true(text):
    assert name_of(Reserved.read({"sagemaker_torch_distributed_enabled": text})) == "torch_distributed"


def test_two_at_once_are_refused():
    with pytest.raises(ConfigurationError, match="mpi and multi_worker_mirrored_strategy are both enabled"):
        world(Reserved.read({**MPI, **MIRRORED}), HOSTS, 0)


@pytest.mark.parametrize("wrong", [0, "2", True, 1.5])
def test_a_wrong_number_of_processes_is_refused(wrong):
    with pytest.raises(ConfigurationError, match="whole number of at least 1"):
        Reserved.read({**TORCH, "sagemaker_mpi_num_of_processes_per_host": wrong})


def test_parameter_servers_run_no_steps():
    reserved = Reserved(distributions={"parameter_server": True}, steps=(Step("1", "ls"),))
    with pytest.raises(ConfigurationError, match="parameter_server runs one script, but the job has steps"):
        world(reserved, HOSTS, 0)


def test_ranks_are_numbered_host_by_host():
    found = torch_distributed.TorchWorld(HOSTS, 2)
    assert [list(found.ranks_of(host)) for host in HOSTS] == [[0, 1], [2, 3]]
    assert [found.host_of(rank) for rank in range(found.size)] == ["algo-1", "algo-1", "algo-2", "algo-2"]


def test_a_rank_of_torch_distributed_is_told_what_torchrun_tells():
    assert torch_distributed.TorchWorld(HOSTS, 2).variables_of(3, ENDPOINTS) == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_NAME": "default",
        "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "40001",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
    }


@pytest.mark.parametrize(
    ("restarts", "count", "most"), [((0, 0), "0", "0"), ((0, 5), "0", "5"), ((2, 5), "2", "5"), ((6, 5), "6", "6")]
)
def test_a_rank_of_torch_distributed_is_told_how_often_the_job_has_begun_again(restarts, count, most):
    found = torch_distributed.TorchWorld(HOSTS, 2).variables_of_attempt(Restarts(*restarts))
    assert found == {"TORCHELASTIC_RESTART_COUNT": count, "TORCHELASTIC_MAX_RESTARTS": most}


@pytest.mark.parametrize(("processes", "threads"), [(1, None), (2, "1")])
def test_several_processes_of_a_host_have_a_thread_each(processes, threads):
    defaults = torch_distributed.TorchWorld(HOSTS, processes).defaults("eth0")
    assert defaults.get("OMP_NUM_THREADS") == threads
    assert defaults["GLOO_SOCKET_IFNAME"] == defaults["NCCL_SOCKET_IFNAME"] == "eth0"


def test_the_tasks_of_parameter_servers_find_each_other_by_tf_config():
    found = parameter_server.ParameterServerWorld(HOSTS, 2)
    endpoints = ["10.0.0.1:1,10.0.0.1:2", "10.0.0.2:3,10.0.0.2:4"]
    variables = [found.variables_of(rank, endpoints) for rank in range(4)]
    cluster = {"chief": ["10.0.0.1:1"], "worker": ["10.0.0.2:3"], "ps": ["10.0.0.1:2", "10.0.0.2:4"]}
    tasks = [("chief", 0), ("ps", 0), ("worker", 0), ("ps", 1)]
    for each, (kind, index) in zip(variables, tasks):
        assert json.loads(each["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": kind, "index": index}}
        assert each["no_grpc_proxy"] == "10.0.0.1,10.0.0.2"
    assert [found.role_of(rank) for rank in range(4)] == ["chief", "ps 0", "worker 0", "ps 1"]
    assert [found.module_of(rank) is not None for rank in range(4)] == [False, True, False, True]
    assert [found.is_awaited(rank) for rank in range(4)] == [True, False, False, False]


def test_on_one_host_the_chief_is_alone():
    found = world(Reserved(distributions={"parameter_server": True}), ("algo-1",), 8)
    assert found == parameter_server.ParameterServerWorld(("algo-1",), 1) and found.module_of(0) is None
    assert json.loads(found.variables_of(0, ["10.0.0.1:1,10.0.0.1:2"])["TF_CONFIG"])["cluster"] == {
        "chief": ["10.0.0.1:1"]
    }


def test_a_worker_of_tensorflow_finds_the_others_by_tf_config():
    variables = multi_worker_mirrored_strategy.MirroredWorld(HOSTS, 1).variables_of(1, ENDPOINTS)
    assert json.loads(variables.pop("TF_CONFIG")) == {
        "cluster": {"worker": ENDPOINTS},
        "task": {"type": "worker", "index": 1},
    }
    assert variables.pop("no_grpc_proxy") == "10.0.0.1,10.0.0.2"
    assert variables == {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
