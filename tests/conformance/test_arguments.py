"""A: arguments and environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"

STRINGS = {
    "plain": "hello",
    "spaces": "  a  b  ",
    "quotes": """it's "quoted" `so`""",
    "newlines": "one\ntwo\r\n\tthree",
    "shell": "$(id) ${HOME} $$ ; rm -rf / & | > x < y * ? [a] ~ \\ !",
    "unicode": "žluťoučký kůň 馬 🐎 \u200b",
    "empty": "",
    "number": "1e3",
    "json": '{"a": [1, "b"]}',
    "null": "null",
    "dash": "--lr",
    "colon": ":",
    "percent": "%s %d {x}",
}


@pytest.mark.law("A1")
@pytest.mark.on_service
@pytest.mark.parametrize("processes", [None, 2])
def test_a_string_arrives_byte_for_byte(script, out, processes):
    job = script.run(ECHO, processes=processes, hyperparameters=STRINGS)
    expected = [word for key in sorted(STRINGS) for word in (f"--{key}", STRINGS[key])]
    choice = {} if processes is None else {"rank": 1}
    assert json.loads(out(job, **choice)) == expected


@pytest.mark.law("A1")
@pytest.mark.on_service
def test_every_kind_of_value_arrives_as_the_contract_says(script, out):
    values = {
        "b": True,
        "Zeta": False,
        "none": None,
        "integer": 3,
        "real": 1e-05,
        "big": 10**20,
        "list": [1, "two", 3.0, None, True],
        "dict": {"k": "v", "a": 1},
        "under_score": 1,
        "da-sh": 2,
    }
    job = script.run(ECHO, hyperparameters=values)
    assert json.loads(out(job)) == [
        *("--Zeta", "False"),
        *("-b", "True"),
        *("--big", "100000000000000000000"),
        *("--da-sh", "2"),
        *("--dict", "a=1,k=v"),
        *("--integer", "3"),
        *("--list", "[1, 'two', 3.0, None, True]"),
        *("--none", ""),
        *("--real", "1e-05"),
        *("--under_score", "1"),
    ]


@pytest.mark.law("A2")
@pytest.mark.parametrize("processes", [None, 1])
def test_the_environment_arrives_byte_for_byte(script, out, processes):
    environment = {f"MY_{name.upper()}": value for name, value in STRINGS.items()}
    source = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('MY_')}))"
    job = script.run(source, hosts=2, processes=processes, environment=environment)
    for host in ("algo-1", "algo-2"):
        assert json.loads(out(job, host=host)) == environment


@pytest.mark.law("A2")
def test_secrets_are_in_no_file_and_no_argument(script, out):
    secret = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
    source = """
import os, pathlib, sys, time
assert os.environ["AWS_SECRET_ACCESS_KEY"]
hidden = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
for argv in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        assert hidden not in argv.read_bytes(), argv
    except (FileNotFoundError, ProcessLookupError):
        pass
base = pathlib.Path(os.environ["SM_INPUT_DIR"]).parent
assert not (base / "input" / "config" / "worldsecret").exists()
print("ok")
"""
    job = script.run(source, hosts=2, processes=1, environment={"AWS_SECRET_ACCESS_KEY": secret})
    assert out(job, rank=0) == out(job, rank=1) == b"ok\n"
    for folder, _, names in os.walk(job.folder):
        for name in names:
            path = Path(folder, name)
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path
            assert name != "worldsecret"


@pytest.mark.law("A2")
def test_a_printed_plan_hides_secrets_and_shows_the_rest(script):
    plan = script.estimator("", environment={"API_TOKEN": "abc123", "COLOUR": "blue"}).plan()
    assert "abc123" not in str(plan)
    assert "COLOUR=blue" in str(plan)


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
def test_the_variables_of_the_contract(script, out, tmp_path):
    (tmp_path / "data").mkdir()
    source = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    job = script.run(
        source,
        hosts=2,
        processes=1,
        hyperparameters={"lr": 0.5, "da-sh": [1]},
        inputs={"train": f"file://{tmp_path / 'data'}"},
    )
    arguments, env = json.loads(out(job, rank=0))
    assert arguments == ["--da-sh", "[1]", "--lr", "0.5"]
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
        "SM_CURRENT_INSTANCE_TYPE": "local",
        "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster",
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": '["algo-1","algo-2"]',
        "SM_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_INSTANCE_GROUPS_DICT": '{"homogeneousCluster":{"hosts":["algo-1","algo-2"],'
        '"instance_group_name":"homogeneousCluster","instance_type":"local"}}',
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
