"""What one job of each shape can tell: its script reports all that it sees, and several laws look at the report.

One worker runs all of this file, so that each job runs once on each backend.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from estimator_container.contract.names import PLATFORM_VARIABLES
from estimator_container.ranks.wrapper import SOCKET_VARIABLE

from estimator_sdk import InvalidArgument
from tests.conformance.conftest import Script
from tests.conformance.jobs import less_of_scheduler
from tests.conformance.reports import ENVIRONMENT, STRINGS, VALUES, Reported, run


@pytest.fixture(scope="session")
def reported(where, tmp_path_factory) -> Callable[..., Reported]:
    """The report of a job of hosts and processes on each; with few hyperparameters, or with every kind of them."""
    jobs: dict[tuple[object, ...], Reported] = {}

    def of(hosts: int, processes: int | None = None, few: bool = False) -> Reported:
        shape = (hosts, processes, few)
        if shape not in jobs:
            jobs[shape] = run(Script(where, tmp_path_factory.mktemp("reported")), *shape)
        return jobs[shape]

    return of


@pytest.mark.law("W1", "W2")
@pytest.mark.parametrize(("hosts", "processes"), [(1, 1), (1, 4), (2, 1), (2, 2), (3, 1), (4, 2)])
def test_the_world_is_right(reported, hosts, processes):
    size, few = hosts * processes, (hosts, processes) == (2, 1)
    names = [f"algo-{number + 1}" for number in range(hosts)]
    for rank, report in enumerate(reported(hosts, processes, few).ranks):
        local = rank % processes
        world = {"rank": rank, "size": size, "node_rank": local, "node_size": processes, "sum": sum(range(size))}
        assert report["world"] == world
        assert {name: report["environment"][name] for name in OF_THE_WORLD} == {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(size),
            "LOCAL_RANK": str(local),
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "SM_CURRENT_HOST": names[rank // processes],
            "SM_HOSTS": json.dumps(names, separators=(",", ":")),
        }


OF_THE_WORLD = (
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "LOCAL_RANK", "RANK", "WORLD_SIZE"),
    *("SM_CURRENT_HOST", "SM_HOSTS"),
)


@pytest.mark.law("W3")
def test_each_rank_sees_its_own_host(reported, backend):
    first, second = (report["environment"] for report in reported(2, 1, few=True).ranks)
    for env, name, place in ((first, "algo-1", "0"), (second, "algo-2", "1")):
        assert env["MINE"] == "yes"
        assert env["SM_CURRENT_HOST"] == env["CURRENT_HOST"] == name
        assert env["SM_CURRENT_HOST_RANK"] == place
        assert json.loads(env["SM_RESOURCE_CONFIG"])["current_host"] == name
        assert json.loads(env["SM_TRAINING_ENV"])["current_host"] == name
        of_others = less_of_scheduler(env, backend)
        assert not [each for each in of_others if each in OF_THE_TOOLKIT or each.startswith("SLURM")]


OF_THE_TOOLKIT = {*PLATFORM_VARIABLES, SOCKET_VARIABLE}
RESERVED = ("SM_", "SAGEMAKER_", "TRAINING_JOB_", "OMPI_", "PMIX_", "OPAL_", "ORTE_", "HWLOC_")
ALSO_RESERVED = {"CURRENT_HOST", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}
OF_OTHERS = {
    *("IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE"),  # Open MPI's memory hooks set them in every rank
    "HOSTNAME",  # the Docker engine's
    *("UCX_MEM_EVENTS", "UCX_LOG_LEVEL", "MPI_UCX_NET_DEVICES"),  # for UCX, which is a part of Open MPI's libraries
    "LC_CTYPE",  # Python's own, where no locale is set (PEP 538)
}


@pytest.mark.law("W3")
@pytest.mark.parametrize("processes", [None, 1])
def test_only_reserved_names_are_added(reported, backend, processes):
    added = less_of_scheduler(reported(1, processes).ranks[0]["environment"], backend) - set(os.environ)
    known = ALSO_RESERVED | OF_OTHERS | set(ENVIRONMENT)
    assert [name for name in added if not name.startswith(RESERVED) and name not in known] == []


@pytest.mark.law("W4")
@pytest.mark.on_service
@pytest.mark.parametrize("hosts", [1, 3])
def test_without_a_distribution_every_host_runs_the_script_once(reported, hosts):
    ran = reported(hosts).ranks
    assert [report["environment"]["SM_CURRENT_HOST"] for report in ran] == [f"algo-{n + 1}" for n in range(hosts)]
    assert [report["environment"].get("RANK") for report in ran] == [None] * hosts
    assert {line.rank for line in reported(hosts).job.logs()} == {None}


@pytest.mark.law("A1")
@pytest.mark.on_service
@pytest.mark.parametrize(("hosts", "processes"), [(1, None), (2, 2)])
def test_every_value_arrives_as_the_contract_says_and_a_string_byte_for_byte(reported, hosts, processes):
    words = {**STRINGS, **{name: word for name, (_, word) in VALUES.items()}}
    expected = [each for name in sorted(words) for each in ("-b" if name == "b" else f"--{name}", words[name])]
    assert [report["arguments"] for report in reported(hosts, processes).ranks] == [expected] * hosts * (processes or 1)


@pytest.mark.law("A2")
@pytest.mark.parametrize(("processes", "few"), [(None, False), (1, True)])
def test_the_environment_arrives_byte_for_byte(reported, processes, few):
    for report in reported(2, processes, few).ranks:
        assert {name: report["environment"].get(name) for name in ENVIRONMENT} == ENVIRONMENT
        assert {name for name in report["environment"] if name.startswith("MY_")} <= set(ENVIRONMENT)


SM_NAMES = [
    "SM_HOSTS",
    "SM_CURRENT_HOST",
    "SM_CURRENT_INSTANCE_TYPE",
    "SM_CURRENT_INSTANCE_GROUP",
    "SM_CURRENT_INSTANCE_GROUP_HOSTS",
    "SM_INSTANCE_GROUPS",
    "SM_INSTANCE_GROUPS_DICT",
    "SM_DISTRIBUTION_INSTANCE_GROUPS",
    "SM_IS_HETERO",
    "SM_NETWORK_INTERFACE_NAME",
    "SM_HPS",
    "SM_HP_LR",
    "SM_HP_DA-SH",
    "SM_HP_DA_SH",
    "SM_USER_ENTRY_POINT",
    "SM_USER_ARGS",
    "SM_MODULE_NAME",
    "SM_MODULE_DIR",
    "SM_FRAMEWORK_MODULE",
    "SM_FRAMEWORK_PARAMS",
    "SM_RESOURCE_CONFIG",
    "SM_INPUT_DATA_CONFIG",
    "SM_CHANNELS",
    "SM_CHANNEL_TRAIN",
    "SM_INPUT_DIR",
    "SM_INPUT_CONFIG_DIR",
    "SM_MODEL_DIR",
    "SM_OUTPUT_DIR",
    "SM_OUTPUT_DATA_DIR",
    "SM_OUTPUT_INTERMEDIATE_DIR",
    "SM_NUM_CPUS",
    "SM_NUM_GPUS",
    "SM_NUM_NEURONS",
    "SM_LOG_LEVEL",
    "SM_TRAINING_ENV",
    "CURRENT_HOST",
    "SAGEMAKER_JOB_NAME",
    "PYTHONPATH",
    "SM_HOST_COUNT",
    "SM_CURRENT_HOST_RANK",
    "SM_MASTER_ADDR",
    "SM_MASTER_PORT",
    "SM_SOURCE_DIR",
    "SM_ENTRY_SCRIPT",
    "SM_INPUT_DATA_DIR",
    "SM_CHECKPOINT_DIR",
    "TRAINING_JOB_NAME",
]


@pytest.mark.law("A3")
def test_the_variables_of_the_contract(reported, where):
    instance_type = where.get("instance_type", "local")
    job, env = reported(2, 1, few=True).job, reported(2, 1, few=True).ranks[0]["environment"]
    assert reported(2, 1, few=True).ranks[0]["arguments"] == ["--da-sh", "[1]", "--lr", "0.5"]
    assert [name for name in SM_NAMES if name not in env] == []
    base = str(Path(env["SM_MODEL_DIR"]).parent)
    relative = {name: value.replace(base, "BASE") for name, value in env.items() if name in SM_NAMES}
    assert relative | {
        "SM_TRAINING_ENV": "",
        "SM_RESOURCE_CONFIG": "",
        "SM_MODULE_DIR": "",
        "PYTHONPATH": "",
    } == {
        "SM_HOSTS": '["algo-1","algo-2"]',
        "SM_CURRENT_HOST": "algo-1",
        "CURRENT_HOST": "algo-1",
        "SM_CURRENT_INSTANCE_TYPE": instance_type,
        "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster",
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": '["algo-1","algo-2"]',
        "SM_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_INSTANCE_GROUPS_DICT": '{"homogeneousCluster":{"hosts":["algo-1","algo-2"],'
        f'"instance_group_name":"homogeneousCluster","instance_type":"{instance_type}"}}}}',
        "SM_DISTRIBUTION_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_IS_HETERO": "false",
        "SM_NETWORK_INTERFACE_NAME": relative["SM_NETWORK_INTERFACE_NAME"],
        "SM_HPS": '{"da-sh":[1],"lr":0.5}',
        "SM_HP_LR": "0.5",
        "SM_HP_DA-SH": "[1]",
        "SM_HP_DA_SH": "[1]",
        "SM_USER_ENTRY_POINT": "train.py",
        "SM_ENTRY_SCRIPT": "train.py",
        "SM_USER_ARGS": '["--da-sh","[1]","--lr","0.5"]',
        "SM_MODULE_NAME": "train",
        "SM_MODULE_DIR": "",
        "SM_SOURCE_DIR": "BASE/code",
        "SM_FRAMEWORK_MODULE": "",
        "SM_FRAMEWORK_PARAMS": (
            '{"sagemaker_mpi_custom_mpi_options":"","sagemaker_mpi_enabled":true,'
            '"sagemaker_mpi_num_of_processes_per_host":1}'
        ),
        "SM_RESOURCE_CONFIG": "",
        "SM_INPUT_DATA_CONFIG": '{"train":{"RecordWrapperType":"None","S3DistributionType":"FullyReplicated",'
        '"TrainingInputMode":"File"}}',
        "SM_CHANNELS": '["train"]',
        "SM_CHANNEL_TRAIN": "BASE/input/data/train",
        "SM_INPUT_DIR": "BASE/input",
        "SM_INPUT_CONFIG_DIR": "BASE/input/config",
        "SM_INPUT_DATA_DIR": "BASE/input/data",
        "SM_MODEL_DIR": "BASE/model",
        "SM_CHECKPOINT_DIR": "BASE/checkpoints",
        "SM_OUTPUT_DIR": "BASE/output",
        "SM_OUTPUT_DATA_DIR": "BASE/output/data",
        "SM_OUTPUT_INTERMEDIATE_DIR": "BASE/output/intermediate",
        "SM_NUM_CPUS": relative["SM_NUM_CPUS"],
        "SM_NUM_GPUS": relative["SM_NUM_GPUS"],
        "SM_NUM_NEURONS": "0",
        "SM_LOG_LEVEL": "20",
        "SM_TRAINING_ENV": "",
        "SAGEMAKER_JOB_NAME": job.name,
        "TRAINING_JOB_NAME": job.name,
        "PYTHONPATH": "",
        "SM_HOST_COUNT": "2",
        "SM_CURRENT_HOST_RANK": "0",
        "SM_MASTER_ADDR": relative["SM_MASTER_ADDR"],
        "SM_MASTER_PORT": "7777",
    }
    assert env["PYTHONPATH"].split(os.pathsep)[0] == f"{base}/code"
    training_env = json.loads(env["SM_TRAINING_ENV"])
    assert training_env["hyperparameters"] == {"lr": 0.5, "da-sh": [1]}
    assert training_env["channel_input_dirs"] == {"train": f"{base}/input/data/train"}
    assert training_env["is_master"] is True


@pytest.mark.law("L2")
def test_the_view_filters_by_rank_host_and_stream(reported):
    job = reported(2, 2).job

    def texts(**choice):
        return sorted(line.tagged().decode()[:18] for line in job.logs(**choice))

    assert texts(rank=3) == ["[1,3]<stderr>:err ", '[1,3]<stdout>:{"ar']
    assert texts(host="algo-2", stream="stdout") == ['[1,2]<stdout>:{"ar', '[1,3]<stdout>:{"ar']
    assert len(texts(stream="stderr")) == 4
    with pytest.raises(InvalidArgument, match="did you mean 'stdout'"):
        job.logs(stream="stdoot")
    with pytest.raises(InvalidArgument, match="algo-2"):
        job.logs(host="algo-22")


def contents(uri):
    with tarfile.open(uri.removeprefix("file://")) as archive:
        members = archive.getmembers()
        return {each.name: archive.extractfile(each).read().decode() for each in members if each.isfile()}


@pytest.mark.law("O1")
def test_the_archives_are_under_the_output_path(reported):
    job = reported(1).job
    folder = job.model_data.removesuffix("/model.tar.gz")
    assert folder.endswith(f"/output/{job.name}/output")
    expected = {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    assert contents(f"{folder}/model.tar.gz") == contents(f"{folder}/output.tar.gz") == expected


@pytest.mark.law("O1")
def test_without_a_world_the_hosts_make_the_model_together(reported):
    found = contents(reported(2).job.model_data)
    assert found == {"from-algo-1": "algo-1", "from-algo-2": "algo-2", "deep/same": "algo-1"}


@pytest.mark.law("O2")
def test_in_a_world_only_the_first_host_makes_the_model(reported):
    folder = reported(2, 1, few=True).job.model_data.removesuffix("/model.tar.gz")
    assert contents(f"{folder}/model.tar.gz") == {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    others = {"from-algo-2": "algo-2", "deep/same": "algo-2"}
    assert contents(f"{folder}/hosts/algo-2/model.tar.gz") == others
    assert contents(f"{folder}/hosts/algo-2/output.tar.gz")["from-algo-2"] == "algo-2"
