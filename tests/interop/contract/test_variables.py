"""What the script is told: its arguments and its environment."""

from __future__ import annotations

import json

import pytest

from .conftest import CHANNELS, GROUPS, HYPERPARAMETERS, RESOURCES, SCRIPT
from .containers import Job

TEXT = json.loads(HYPERPARAMETERS["text"])
ARGUMENTS = {
    "--Upper": "1",
    "-b": "True",
    "--da-sh": "3",
    "--dict": "a=[None, 'x'],b=1",
    "--empty": "",
    "--list": "[1, 'two', None, 0.5]",
    "--none": "",
    "--quoted": "q",
    "--raw": "hello",
    "--science": "1000.0",
    "--text": TEXT,
    "--under_score": "0.1",
}
VALUES = {
    "Upper": 1,
    "b": True,
    "da-sh": 3,
    "dict": {"b": 1, "a": [None, "x"]},
    "empty": "",
    "list": [1, "two", None, 0.5],
    "none": None,
    "quoted": "q",
    "raw": "hello",
    "science": 1000.0,
    "text": TEXT,
    "under_score": 0.1,
}


@pytest.fixture
def variables(seen) -> dict[str, str]:
    return seen.report["environment"]


def decoded(variables, name):
    return json.loads(variables[name])


@pytest.mark.contract("H1", "H2", "H3", "H4", "H5", "H6")
def test_the_arguments(seen):
    assert seen.report["arguments"] == [word for pair in ARGUMENTS.items() for word in pair]


@pytest.mark.contract("H7")
def test_other_reserved_names_are_for_the_framework(seen, run, variables):
    assert decoded(variables, "SM_FRAMEWORK_PARAMS") == {"sagemaker_new": [1]}
    several = {"sagemaker_parameter_server_enabled": "true", "sagemaker_mpi_enabled": "false"}
    report = run(Job({"train.py": SCRIPT}, hyperparameters=several)).report
    assert decoded(report["environment"], "SM_FRAMEWORK_PARAMS") == {
        "sagemaker_parameter_server_enabled": True,
        "sagemaker_mpi_enabled": False,
    }
    assert decoded(report["environment"], "SM_DISTRIBUTION_INSTANCE_GROUPS") == ["homogeneousCluster"]


@pytest.mark.contract("H8")
def test_the_variable_wins_over_the_hyperparameter(run):
    code = {"train.py": "raise SystemExit(1)", "other.py": SCRIPT}
    report = run(Job(code, environment={"SAGEMAKER_PROGRAM": "other.py"})).report
    assert report["environment"]["SM_USER_ENTRY_POINT"] == "other.py"


@pytest.mark.contract("H9")
def test_reserved_names_with_variables_of_their_own(variables):
    assert variables["SM_LOG_LEVEL"] == "10"
    assert (variables["SAGEMAKER_JOB_NAME"], variables["SAGEMAKER_REGION"]) == ("job-1", "eu-west-1")


@pytest.mark.contract("V1", "V5")
def test_the_script_itself(variables):
    assert (variables["SM_USER_ENTRY_POINT"], variables["SM_MODULE_NAME"]) == ("train.py", "train")
    assert variables["SM_USER_ARGS"] == json.dumps(
        [word for pair in ARGUMENTS.items() for word in pair], separators=(",", ":")
    )
    assert variables["SM_HPS"] == json.dumps(VALUES, sort_keys=True, separators=(",", ":"))
    assert variables["SM_FRAMEWORK_MODULE"] == ""


@pytest.mark.contract("F4", "V2", "V9")
def test_the_cluster(variables):
    assert decoded(variables, "SM_HOSTS") == decoded(variables, "SM_CURRENT_INSTANCE_GROUP_HOSTS") == ["algo-1"]
    assert variables["SM_CURRENT_HOST"] == variables["CURRENT_HOST"] == "algo-1"
    assert variables["SM_CURRENT_INSTANCE_TYPE"] == "ml.c5.xlarge"
    assert variables["SM_CURRENT_INSTANCE_GROUP"] == "cpu"
    assert decoded(variables, "SM_INSTANCE_GROUPS") == ["cpu", "more"]
    assert decoded(variables, "SM_INSTANCE_GROUPS_DICT") == {group["instance_group_name"]: group for group in GROUPS}
    assert decoded(variables, "SM_DISTRIBUTION_INSTANCE_GROUPS") == []
    assert variables["SM_IS_HETERO"] == "true"
    assert variables["SM_NETWORK_INTERFACE_NAME"] == "eth0"
    assert decoded(variables, "SM_RESOURCE_CONFIG") == {"current_host": "algo-1", "hosts": ["algo-1"], **RESOURCES}
    assert decoded(variables, "SM_TOPOLOGY") == RESOURCES["topology"]


@pytest.mark.contract("V3")
def test_the_places(variables):
    places = {
        "SM_MODEL_DIR": "model",
        "SM_INPUT_DIR": "input",
        "SM_INPUT_CONFIG_DIR": "input/config",
        "SM_OUTPUT_DIR": "output",
        "SM_OUTPUT_DATA_DIR": "output/data",
        "SM_OUTPUT_INTERMEDIATE_DIR": "output/intermediate",
        "SM_MODULE_DIR": "code",
    }
    assert {name: variables[name] for name in places} == {name: f"/opt/ml/{path}" for name, path in places.items()}


@pytest.mark.contract("V4")
def test_the_channels(variables):
    assert decoded(variables, "SM_CHANNELS") == ["stream", "train"]
    assert variables["SM_CHANNEL_TRAIN"] == "/opt/ml/input/data/train"
    assert variables["SM_CHANNEL_STREAM"] == "/opt/ml/input/data/stream"
    assert decoded(variables, "SM_INPUT_DATA_CONFIG") == CHANNELS


@pytest.mark.contract("V6")
def test_the_machine(variables):
    assert int(variables["SM_NUM_CPUS"]) >= 1
    assert (variables["SM_NUM_GPUS"], variables["SM_NUM_NEURONS"]) == ("0", "0")


@pytest.mark.contract("V7")
def test_the_hyperparameters(toolkit, variables):
    given = {name: value for name, value in variables.items() if name.startswith("SM_HP_")}
    spelled = {"SM_HP_DA_SH"} if toolkit.is_ours else set()
    assert given.keys() == {f"SM_HP_{name.upper()}" for name in VALUES} | spelled
    assert {given[name] for name in given if "SH" in name} == {"3"}
    assert (given["SM_HP_B"], given["SM_HP_NONE"], given["SM_HP_TEXT"]) == ("true", "", TEXT)
    assert given["SM_HP_DICT"] == '{"a":[null,"x"],"b":1}'


@pytest.mark.contract("V8")
def test_all_of_it_as_one_object(variables):
    whole = decoded(variables, "SM_TRAINING_ENV")
    assert whole["hyperparameters"] == VALUES
    assert whole["channel_input_dirs"] == {name: f"/opt/ml/input/data/{name}" for name in CHANNELS}
    assert whole["additional_framework_parameters"] == {"sagemaker_new": [1]}
    assert (whole["is_master"], whole["master_hostname"], whole["job_name"]) == (True, "algo-1", "job-1")
    for name in """current_host current_instance_type current_instance_group hosts instance_groups is_hetero log_level
        model_dir module_dir module_name network_interface_name num_cpus num_gpus num_neurons output_dir
        output_data_dir output_intermediate_dir input_dir input_config_dir user_entry_point""".split():
        value = variables[f"SM_{name.upper()}"]
        assert value in (whole[name], json.dumps(whole[name], separators=(",", ":")))


@pytest.mark.contract("V10")
def test_the_python_path(variables):
    assert variables["PYTHONPATH"].split(":")[0] == "/opt/ml/code"


@pytest.mark.contract("V11")
def test_the_newer_family(toolkit, variables):
    newer = {
        "SM_HOST_COUNT": "1",
        "SM_CURRENT_HOST_RANK": "0",
        "SM_MASTER_ADDR": "algo-1",
        "SM_MASTER_PORT": "7777",
        "SM_SOURCE_DIR": "/opt/ml/code",
        "SM_ENTRY_SCRIPT": "train.py",
        "SM_INPUT_DATA_DIR": "/opt/ml/input/data",
    }
    assert {name: variables[name] for name in newer if name in variables} == (newer if toolkit.is_ours else {})
