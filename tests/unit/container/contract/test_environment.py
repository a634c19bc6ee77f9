import json
import os
import re

import pytest
from estimator_container.contract.cluster import Cluster, HostGroup
from estimator_container.contract.environment import interpreter, of_the_script, to_text
from estimator_container.contract.names import PLATFORM_VARIABLES, Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.runtime import machine

LAYOUT = Layout("/opt/ml")
CHANNELS = {"train": {"TrainingInputMode": "File"}, "Eval-set": {"TrainingInputMode": "File"}}
HYPERPARAMETERS = {
    "lr": "0.1",
    "batch-size": "32",
    "name": '"a b"',
    "flag": "true",
    "nothing": "null",
    "sizes": "[1, 2]",
    "sagemaker_program": '"train.py"',
    "sagemaker_job_name": '"job-1"',
    "sagemaker_region": '"eu-west-1"',
    "sagemaker_new": "5",
}
GROUPS = (
    HostGroup("cpu", "ml.c5.xlarge", ("algo-1", "algo-2")),
    HostGroup("gpu", "ml.p3.2xlarge", ("algo-3",)),
)


def cluster(host="algo-2", **changes):
    given = {
        "current_host": host,
        "hosts": ("algo-1", "algo-2", "algo-3"),
        "current_instance_type": "ml.c5.xlarge",
        "current_group_name": "cpu",
        "groups": GROUPS,
        "network_interface": "eth0",
        "topology": None,
        "addresses": {},
    }
    return Cluster(**{**given, **changes})


def environment(platform=(), program="train.py", layout=LAYOUT, hyperparameters=HYPERPARAMETERS, **changes):
    platform, own = dict(platform), cluster(**changes)
    resources = {"current_host": own.current_host, "hosts": list(own.hosts)}
    given = Hyperparameters.read(hyperparameters)
    variables = {name: text for name, text in platform.items() if name == "TRAINING_JOB_NAME"}
    settings = Settings.from_documents(layout, resources, CHANNELS, given, variables)
    settings = settings._replace(cluster=own, resource_config={"current_host": "algo-2"})
    return of_the_script(settings, platform, program, "/venv/bin/python")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        ("", ""),
        (None, ""),
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        ([1, "a"], '[1,"a"]'),
        ({"b": 1, "a": [None]}, '{"a":[null],"b":1}'),
        ({}, "{}"),
        (["é"], '["\\u00e9"]'),
    ],
)
def test_a_value_is_a_string_as_it_is_or_compact_sorted_json(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SM_HOSTS", '["algo-1","algo-2","algo-3"]'),
        ("SM_HOST_COUNT", "3"),
        ("SM_CURRENT_HOST", "algo-2"),
        ("CURRENT_HOST", "algo-2"),
        ("SM_CURRENT_HOST_RANK", "1"),
        ("SM_MASTER_ADDR", "algo-1"),
        ("SM_MASTER_PORT", "7777"),
        ("SM_CURRENT_INSTANCE_TYPE", "ml.c5.xlarge"),
        ("SM_CURRENT_INSTANCE_GROUP", "cpu"),
        ("SM_CURRENT_INSTANCE_GROUP_HOSTS", '["algo-1","algo-2"]'),
        ("SM_INSTANCE_GROUPS", '["cpu","gpu"]'),
        (
            "SM_INSTANCE_GROUPS_DICT",
            '{"cpu":{"hosts":["algo-1","algo-2"],"instance_group_name":"cpu","instance_type":"ml.c5.xlarge"},'
            '"gpu":{"hosts":["algo-3"],"instance_group_name":"gpu","instance_type":"ml.p3.2xlarge"}}',
        ),
        ("SM_DISTRIBUTION_INSTANCE_GROUPS", "[]"),
        ("SM_IS_HETERO", "true"),
        ("SM_NETWORK_INTERFACE_NAME", "eth0"),
        ("SM_HPS", '{"batch-size":32,"flag":true,"lr":0.1,"name":"a b","nothing":null,"sizes":[1,2]}'),
        ("SM_HP_LR", "0.1"),
        ("SM_HP_BATCH-SIZE", "32"),
        ("SM_HP_BATCH_SIZE", "32"),
        ("SM_HP_NAME", "a b"),
        ("SM_HP_FLAG", "true"),
        ("SM_HP_NOTHING", ""),
        ("SM_HP_SIZES", "[1,2]"),
        ("SM_USER_ENTRY_POINT", "train.py"),
        ("SM_ENTRY_SCRIPT", "train.py"),
        (
            "SM_USER_ARGS",
            '["--batch-size","32","--flag","True","--lr","0.1","--name","a b","--nothing","","--sizes","[1, 2]"]',
        ),
        ("SM_MODULE_NAME", "train"),
        ("SM_MODULE_DIR", "/opt/ml/code"),
        ("SM_SOURCE_DIR", "/opt/ml/code"),
        ("SM_FRAMEWORK_MODULE", ""),
        ("SM_FRAMEWORK_PARAMS", '{"sagemaker_new":5}'),
        ("SM_RESOURCE_CONFIG", '{"current_host":"algo-2"}'),
        ("SM_INPUT_DATA_CONFIG", '{"Eval-set":{"TrainingInputMode":"File"},"train":{"TrainingInputMode":"File"}}'),
        ("SM_CHANNELS", '["Eval-set","train"]'),
        ("SM_CHANNEL_TRAIN", "/opt/ml/input/data/train"),
        ("SM_CHANNEL_EVAL-SET", "/opt/ml/input/data/Eval-set"),
        ("SM_INPUT_DIR", "/opt/ml/input"),
        ("SM_INPUT_CONFIG_DIR", "/opt/ml/input/config"),
        ("SM_INPUT_DATA_DIR", "/opt/ml/input/data"),
        ("SM_MODEL_DIR", "/opt/ml/model"),
        ("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints"),
        ("SM_OUTPUT_DIR", "/opt/ml/output"),
        ("SM_OUTPUT_DATA_DIR", "/opt/ml/output/data"),
        ("SM_OUTPUT_INTERMEDIATE_DIR", "/opt/ml/output/intermediate"),
        ("SM_NUM_CPUS", str(machine.cpus())),
        ("SM_NUM_GPUS", str(machine.gpus())),
        ("SM_NUM_NEURONS", str(machine.neurons())),
        ("SM_LOG_LEVEL", "20"),
        ("SAGEMAKER_REGION", "eu-west-1"),
        ("SAGEMAKER_JOB_NAME", "job-1"),
        ("PYTHONPATH", "/opt/ml/code"),
    ],
)
def test_a_variable_of_the_contract_has_the_value_that_the_contract_says(name, text):
    assert environment()[name] == text


def test_every_variable_that_the_contract_names_is_there():
    contract = """SM_HOSTS SM_CURRENT_HOST SM_CURRENT_INSTANCE_TYPE SM_CURRENT_INSTANCE_GROUP SM_HPS SM_IS_HETERO
        SM_CURRENT_INSTANCE_GROUP_HOSTS SM_INSTANCE_GROUPS SM_INSTANCE_GROUPS_DICT SM_DISTRIBUTION_INSTANCE_GROUPS
        SM_NETWORK_INTERFACE_NAME SM_USER_ENTRY_POINT SM_USER_ARGS SM_MODULE_NAME SM_MODULE_DIR SM_FRAMEWORK_MODULE
        SM_FRAMEWORK_PARAMS SM_RESOURCE_CONFIG SM_INPUT_DATA_CONFIG SM_CHANNELS SM_INPUT_DIR SM_INPUT_CONFIG_DIR
        SM_MODEL_DIR SM_OUTPUT_DIR SM_OUTPUT_DATA_DIR SM_OUTPUT_INTERMEDIATE_DIR SM_NUM_CPUS SM_NUM_GPUS
        SM_NUM_NEURONS SM_LOG_LEVEL SM_TRAINING_ENV CURRENT_HOST SAGEMAKER_REGION SAGEMAKER_JOB_NAME PYTHONPATH
        SM_HOST_COUNT SM_CURRENT_HOST_RANK SM_MASTER_ADDR SM_MASTER_PORT SM_SOURCE_DIR SM_ENTRY_SCRIPT
        SM_INPUT_DATA_DIR"""
    assert set(contract.split()) <= set(environment())


def test_every_value_is_a_string():
    assert all(isinstance(value, str) for value in environment().values())


def test_the_topology_is_there_only_if_the_platform_gave_one():
    assert "SM_TOPOLOGY" not in environment()
    assert environment(topology={"rack": 1})["SM_TOPOLOGY"] == '{"rack":1}'


def test_job_name_and_region_are_empty_where_they_are_not_known():
    env = environment(hyperparameters={})
    assert (env["SAGEMAKER_JOB_NAME"], env["SAGEMAKER_REGION"]) == ("", "")
    assert environment({"AWS_DEFAULT_REGION": "eu-west-2"}, hyperparameters={})["SAGEMAKER_REGION"] == "eu-west-2"


@pytest.mark.parametrize(
    ("hyperparameters", "groups"),
    [
        ({}, "[]"),
        ({"sagemaker_mpi_enabled": "true"}, '["cpu"]'),
        ({"sagemaker_torch_distributed_enabled": "true"}, '["cpu"]'),
        ({"sagemaker_mpi_enabled": "false"}, "[]"),
        ({"sagemaker_mpi_enabled": "true", "sagemaker_distribution_instance_groups": '["gpu"]'}, '["gpu"]'),
    ],
)
def test_a_distribution_spans_the_groups_that_are_named_else_the_hosts_own(hyperparameters, groups):
    assert environment(hyperparameters=hyperparameters)["SM_DISTRIBUTION_INSTANCE_GROUPS"] == groups


def test_each_host_sees_its_own_values_and_shares_the_others():
    differ = {"SM_CURRENT_HOST", "CURRENT_HOST", "SM_CURRENT_HOST_RANK", "SM_TRAINING_ENV"}
    one, two = environment(host="algo-1"), environment(host="algo-2")
    assert {name for name in one if one[name] != two[name]} == differ
    assert [environment(host=host)["SM_CURRENT_HOST_RANK"] for host in ("algo-1", "algo-2", "algo-3")] == [
        "0",
        "1",
        "2",
    ]


def test_the_master_goes_by_its_address_where_the_platform_gave_one():
    assert environment(addresses={"algo-1": ("10.0.0.5", 99)})["SM_MASTER_ADDR"] == "10.0.0.5"


def test_the_groups_of_a_distribution_are_passed_on():
    given = {"sagemaker_distribution_instance_groups": '["gpu"]'}
    assert environment(hyperparameters=given)["SM_DISTRIBUTION_INSTANCE_GROUPS"] == '["gpu"]'


def test_what_the_platform_tells_the_toolkit_does_not_reach_the_script():
    platform = {**dict.fromkeys(PLATFORM_VARIABLES, "x"), "USERS_OWN": "y", "AWS_REGION": "eu-west-1", "EMPTY": ""}
    seen = environment(platform)
    assert not PLATFORM_VARIABLES & set(seen)
    assert (seen["USERS_OWN"], seen["AWS_REGION"], seen["EMPTY"]) == ("y", "eu-west-1", "")


def test_only_names_of_the_contract_are_added_to_the_users_environment():
    platform = {"USERS_OWN": "y"}
    added = set(environment(platform)) - set(platform)
    others = {name for name in added if not name.startswith("SM_")}
    assert others == {"CURRENT_HOST", "SAGEMAKER_REGION", "SAGEMAKER_JOB_NAME", "PATH", "PYTHONPATH"}


def test_the_contract_counts_more_than_the_users_environment():
    assert environment({"SM_CURRENT_HOST": "mine"})["SM_CURRENT_HOST"] == "algo-2"


def test_the_code_is_the_first_place_of_the_python_path_and_the_users_come_after_it():
    assert environment({"PYTHONPATH": "/a:/b"})["PYTHONPATH"] == "/opt/ml/code:/a:/b"
    assert environment({"PYTHONPATH": ""})["PYTHONPATH"] == "/opt/ml/code"


@pytest.mark.parametrize(
    ("platform", "path"),
    [({"PATH": "/a:/b"}, "/a:/b"), ({}, os.defpath), ({"PATH": ""}, os.defpath)],
)
def test_a_shell_script_finds_the_interpreter_of_scripts_first(platform, path):
    assert environment(platform)["PATH"] == f"/venv/bin:{path}"


def test_a_dash_is_spelled_both_ways_so_that_a_shell_can_address_it():
    seen = environment(hyperparameters={"a-b-c": "1"})
    assert (seen["SM_HP_A-B-C"], seen["SM_HP_A_B_C"]) == ("1", "1")
    assert re.fullmatch(r"\w+", "SM_HP_A_B_C")


@pytest.mark.parametrize("order", [["a_b", "a-b"], ["a-b", "a_b"]])
def test_a_key_with_a_dash_never_hides_one_with_an_underscore(order):
    values = {"a_b": "1", "a-b": "2"}
    seen = environment(hyperparameters={name: values[name] for name in order})
    assert (seen["SM_HP_A_B"], seen["SM_HP_A-B"]) == ("1", "2")


def test_a_shell_script_has_its_name_for_a_module():
    seen = environment(program="run/train.sh")
    assert (seen["SM_USER_ENTRY_POINT"], seen["SM_MODULE_NAME"]) == ("run/train.sh", "run/train.sh")


def test_everything_follows_the_base_directory():
    seen = environment(layout=Layout("/elsewhere"), hyperparameters={})
    assert "/opt/ml" not in json.dumps(seen)
    assert seen["SM_MODEL_DIR"] == "/elsewhere/model"


def test_the_training_environment_is_one_object_with_the_names_of_the_peer_package():
    whole = json.loads(environment({"TRAINING_JOB_NAME": "job-1"})["SM_TRAINING_ENV"])
    peer = """additional_framework_parameters channel_input_dirs current_host current_instance_group
        current_instance_group_hosts current_instance_type distribution_instance_groups framework_module hosts
        hyperparameters input_config_dir input_data_config input_dir instance_groups instance_groups_dict is_hetero
        is_master job_name log_level master_hostname model_dir module_dir module_name network_interface_name num_cpus
        num_gpus num_neurons output_data_dir output_dir output_intermediate_dir resource_config user_entry_point"""
    assert set(peer.split()) <= set(whole)
    assert whole["hyperparameters"] == {
        "lr": 0.1, "batch-size": 32, "name": "a b", "flag": True, "nothing": None, "sizes": [1, 2]
    }  # fmt: skip
    assert whole["channel_input_dirs"] == {name: f"/opt/ml/input/data/{name}" for name in CHANNELS}
    assert (whole["is_master"], whole["master_hostname"], whole["job_name"]) == (False, "algo-1", "job-1")
    assert json.loads(environment(host="algo-1")["SM_TRAINING_ENV"])["is_master"] is True


def test_the_interpreter_is_that_of_the_overlay_once_there_is_one(tmp_path):
    overlay = str(tmp_path)
    own = interpreter(None)
    assert interpreter("") == interpreter(overlay) == own
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(own)
    assert interpreter(overlay) == str(tmp_path / "bin" / "python")
