import inspect
import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import botocore.session
import pytest
from botocore.validate import ParamValidator

from estimator_sdk import JobSpec
from estimator_sdk.errors import InvalidArgument
from estimator_sdk.estimator import launch
from estimator_sdk.estimator.estimator import Estimator
from estimator_sdk.spec.job_document import InstanceGroup
from estimator_sdk.spec.training_input import TrainingInput

REQUEST = botocore.session.get_session().get_service_model("sagemaker").shape_for("CreateTrainingJobRequest")
EVERYTHING = {
    "entry_point": "train.py",
    "source_dir": "src",
    "dependencies": ["lib"],
    "arguments": ["data", "--lr", "0.1"],
    "image_uri": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/image:1",
    "role": "arn:aws:iam::123456789012:role/training",
    "instance_type": "ml.g5.12xlarge",
    "instance_count": 2,
    "cpus": 1.5,
    "memory": 4,
    "gpus": 4,
    "distribution": {"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "-x A=b"}},
    "hyperparameters": {"lr": 0.1, "name": "1e3"},
    "environment": {"A": "b"},
    "inherit_environment": ["AWS_*"],
    "metric_definitions": [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}],
    "input_mode": "Pipe",
    "output_path": "s3://bucket/out",
    "output_kms_key": "key-1",
    "code_location": "s3://bucket/code",
    "checkpoint_s3_uri": "s3://bucket/checkpoints",
    "checkpoint_local_path": "/opt/ml/checkpoints",
    "checkpoint_keep": 5,
    "base_job_name": "digits",
    "tags": [{"Key": "team", "Value": "vision"}],
    "max_run": 3600,
    "max_wait": 7200,
    "use_spot_instances": True,
    "max_retry_attempts": 3,
    "restart_policy": {"on": ["signal"], "max": 5},
    "spare_hosts": 1,
    "stop_timeout": 30,
    "hang_timeout": 600,
    "keep_alive_period_in_seconds": 600,
    "volume_size": 100,
    "volume_kms_key": "key-2",
    "subnets": ["subnet-1"],
    "security_group_ids": ["sg-1"],
    "encrypt_inter_container_traffic": True,
    "enable_network_isolation": True,
    "instance_placement_config": {"EnableMultipleJobs": True},
    "training_plan": "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/plan-1",
    "model_uri": "s3://bucket/model.tar.gz",
    "model_channel_name": "start",
    "container_entry_point": ["/bin/run"],
    "container_arguments": ["--fast"],
    "training_repository_access_mode": "Vpc",
    "training_repository_credentials_provider_arn": "arn:aws:lambda:eu-west-1:123456789012:function:keys",
    "disable_output_compression": True,
    "enable_sagemaker_metrics": True,
    "enable_remote_debug": True,
    "enable_infra_check": True,
    "enable_session_tag_chaining": True,
    "rules": [{"RuleConfigurationName": "r", "RuleEvaluatorImage": "image:1"}],
    "debugger_hook_config": {"S3OutputPath": "s3://bucket/debug"},
    "tensorboard_output_config": {"S3OutputPath": "s3://bucket/board"},
    "profiler_config": {"S3OutputPath": "s3://bucket/profile"},
    "disable_profiler": False,
    "container_log_level": logging.DEBUG,
    "slurm": {"partition": "gpu", "exclusive": True},
    "hosts": ["a", "user@b:2222"],
    "queue": True,
    "backend": "process",
}


def refusal(**arguments) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as raised:
        Estimator(**{"entry_point": "train.py", **arguments})
    return raised.value


def test_every_argument_has_its_place_in_the_document():
    assert {*EVERYTHING, "instance_groups", "command", "steps", "hostfile"} == set(
        inspect.signature(Estimator).parameters
    )
    spec = Estimator(**EVERYTHING).spec(
        {"train": TrainingInput("s3://bucket/a")}, "job-1", code_uri="s3://bucket/code/x.tar.gz"
    )
    request = spec.to_request()
    assert request == {
        "TrainingJobName": "job-1",
        "AlgorithmSpecification": {
            "TrainingImage": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/image:1",
            "TrainingInputMode": "Pipe",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}],
            "EnableSageMakerMetricsTimeSeries": True,
            "ContainerEntrypoint": ["/bin/run"],
            "ContainerArguments": ["--fast"],
            "TrainingImageConfig": {
                "TrainingRepositoryAccessMode": "Vpc",
                "TrainingRepositoryAuthConfig": {
                    "TrainingRepositoryCredentialsProviderArn": "arn:aws:lambda:eu-west-1:123456789012:function:keys"
                },
            },
        },
        "RoleArn": "arn:aws:iam::123456789012:role/training",
        "HyperParameters": {
            "lr": "0.1",
            "name": '"1e3"',
            "sagemaker_program": '"train.py"',
            "sagemaker_container_log_level": "10",
            "sagemaker_job_name": '"job-1"',
            "sagemaker_submit_directory": '"s3://bucket/code/x.tar.gz"',
            "sagemaker_estimator_stop_timeout": "30",
            "sagemaker_estimator_inherit_environment": '["AWS_*"]',
            "sagemaker_estimator_arguments": '["data", "--lr", "0.1"]',
            "sagemaker_estimator_hang_timeout": "600",
            "sagemaker_estimator_cpus": "1.5",
            "sagemaker_estimator_memory": "4",
            "sagemaker_estimator_checkpoint_keep": "5",
            "sagemaker_estimator_restart_policy": '{"on": ["signal"], "max": 5}',
            "sagemaker_estimator_spare_hosts": "1",
            "sagemaker_estimator_queue": "true",
            "sagemaker_estimator_slurm": '{"partition": "gpu", "gpus": 4, "exclusive": true}',
            "sagemaker_estimator_pool": '[{"name": "a"}, {"name": "user@b", "port": 2222}]',
            "sagemaker_mpi_enabled": "true",
            "sagemaker_mpi_num_of_processes_per_host": "4",
            "sagemaker_mpi_custom_mpi_options": '"-x A=b"',
        },
        "InputDataConfig": [
            {
                "ChannelName": "train",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/a"}},
            },
            {
                "ChannelName": "start",
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": "s3://bucket/model.tar.gz",
                        "S3DataDistributionType": "FullyReplicated",
                    }
                },
                "ContentType": "application/x-sagemaker-model",
                "InputMode": "File",
            },
        ],
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out", "KmsKeyId": "key-1", "CompressionType": "NONE"},
        "ResourceConfig": {
            "InstanceType": "ml.g5.12xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 100,
            "VolumeKmsKeyId": "key-2",
            "KeepAlivePeriodInSeconds": 600,
            "TrainingPlanArn": "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/plan-1",
            "InstancePlacementConfig": {"EnableMultipleJobs": True},
        },
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        "Tags": [{"Key": "team", "Value": "vision"}],
        "EnableNetworkIsolation": True,
        "EnableInterContainerTrafficEncryption": True,
        "EnableManagedSpotTraining": True,
        "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        "Environment": {"A": "b"},
        "RetryStrategy": {"MaximumRetryAttempts": 3},
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/debug"},
        "DebugRuleConfigurations": [{"RuleConfigurationName": "r", "RuleEvaluatorImage": "image:1"}],
        "TensorBoardOutputConfig": {"S3OutputPath": "s3://bucket/board"},
        "ProfilerConfig": {"S3OutputPath": "s3://bucket/profile"},
        "RemoteDebugConfig": {"EnableRemoteDebug": True},
        "InfraCheckConfig": {"EnableInfraCheck": True},
        "SessionChainingConfig": {"EnableSessionTagChaining": True},
    }
    assert not ParamValidator().validate(request, REQUEST).has_errors()
    assert JobSpec.from_request(json.loads(json.dumps(request))) == spec


def test_instance_groups_stand_in_the_place_of_type_and_count():
    groups = [
        InstanceGroup(instance_type="ml.c5.xlarge", instance_count=1, instance_group_name="cpu"),
        {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "InstanceGroupName": "gpu"},
    ]
    estimator = Estimator(entry_point="train.py", instance_groups=groups)  # type: ignore[list-item]
    resources = estimator.spec(job_name="job-1").to_request()["ResourceConfig"]
    assert resources == {
        "VolumeSizeInGB": 30,
        "InstanceGroups": [
            {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1, "InstanceGroupName": "cpu"},
            {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "InstanceGroupName": "gpu"},
        ],
    }


def test_the_profiler_is_switched_off_by_name():
    request = Estimator(entry_point="train.py", disable_profiler=True, debugger_hook_config=False).spec().to_request()
    assert request["ProfilerConfig"] == {"DisableProfiler": True} and "DebugHookConfig" not in request


def test_the_defaults_say_as_little_as_they_can():
    estimator = Estimator(entry_point="train.py")
    assert estimator.spec(job_name="job-1").to_request() == {
        "TrainingJobName": "job-1",
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_container_log_level": "20",
            "sagemaker_job_name": '"job-1"',
        },
        "ResourceConfig": {"InstanceType": "local", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
    }


def test_an_image_s_own_program_gets_no_hyperparameters_that_it_may_not_know():
    spec = Estimator(image_uri="repo/xgboost:1", hyperparameters={"depth": 3}).spec()
    assert spec.hyperparameters == {"depth": "3"}


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"instance_cout": 2}, "instance_cout", "did you mean 'instance_count'?"),
        ({"train_instance_count": 2}, "train_instance_count", "did you mean 'instance_count'?"),
        ({"hyperparameter": {}}, "hyperparameter", "did you mean 'hyperparameters'?"),
        ({"instance_count": "2"}, "instance_count", "an int, not '2' (str)"),
        ({"instance_count": True}, "instance_count", "an int, not True (bool)"),
        ({"instance_count": 2.0}, "instance_count", "an int, not 2.0 (float)"),
        ({"instance_count": 0}, "instance_count", "at least 1, not 0"),
        ({"instance_type": "ml.p3.2xlarg"}, "instance_type", "did you mean 'ml.p3.2xlarge'?"),
        ({"instance_type": None}, "instance_type", "a str, not None"),
        ({"max_run": 0}, "max_run", "at least 1"),
        ({"max_run": 1.5}, "max_run", "an int"),
        ({"stop_timeout": -1}, "stop_timeout", "from 0 to 86400"),
        ({"stop_timeout": float("nan")}, "stop_timeout", "must be a number, not nan"),
        ({"max_retry_attempts": 31}, "max_retry_attempts", "from 1 to 30"),
        ({"spare_hosts": -1}, "spare_hosts", "at least 0"),
        ({"keep_alive_period_in_seconds": 21601}, "keep_alive_period_in_seconds", "from 0 to 21600"),
        ({"volume_size": 0}, "volume_size", "at least 1"),
        ({"use_spot_instances": 1}, "use_spot_instances", "True or False"),
        ({"entry_point": 3}, "entry_point", "a str or a path"),
        ({"dependencies": "lib"}, "dependencies", "a list, not 'lib'"),
        ({"dependencies": [3]}, "dependencies[0]", "a str or a path"),
        ({"hyperparameters": [1]}, "hyperparameters", "a dict"),
        ({"hyperparameters": {"a": {1}}}, "hyperparameters['a']", "a set"),
        ({"hyperparameters": {"sagemaker_x": 1}}, "hyperparameters['sagemaker_x']", "reserved"),
        (
            {"hyperparameters": {f"k{i}": i for i in range(98)}},
            "hyperparameters",
            "98 entries, and 3 more are added",
        ),
        ({"distribution": {"mpi": {"enabled": True, "processes_per_host": "1"}}}, None, "whole number"),
        ({"distribution": "mpi"}, "distribution", "a dict"),
        ({"environment": {"A": 1}}, "environment['A']", "a str, not 1"),
        ({"environment": {"A=B": "1"}}, "environment['A=B']", "rename it"),
        ({"environment": {"": "1"}}, "environment['']", "rename it"),
        ({"environment": {"A": "\0"}}, "environment['A']", "NUL"),
        ({"inherit_environment": "AWS_*"}, "inherit_environment", "a list"),
        ({"inherit_environment": 1}, "inherit_environment", "True or False"),
        ({"inherit_environment": ["A=b"]}, "inherit_environment", "['AWS_*', 'HF_TOKEN']"),
        ({"metric_definitions": {"Name": "a", "Regex": "b"}}, "metric_definitions", "a list"),
        ({"metric_definitions": [{"Name": "a"}]}, "metric_definitions[0].Regex", "is missing"),
        (
            {"metric_definitions": [{"Name": "a", "regex": "b"}]},
            "metric_definitions[0].Regex",
            "rename 'regex' if",
        ),
        (
            {"metric_definitions": [{"Name": "a", "Regex": "loss"}]},
            "metric_definitions[0].Regex",
            "has no group",
        ),
        ({"metric_definitions": [{"Name": " ", "Regex": "(.)"}]}, "metric_definitions[0].Name", "cannot be shown"),
        ({"metric_definitions": [{"Name": "a\nb", "Regex": "(.)"}]}, "metric_definitions[0].Name", "cannot be shown"),
        ({"model_channel_name": ".."}, "model_channel_name", "no folder can have it"),
        ({"model_channel_name": "estimator-world"}, "model_channel_name", "toolkit's own"),
        (
            {"metric_definitions": [{"Name": "a", "Regex": "("}]},
            "metric_definitions[0].Regex",
            "is not a valid pattern",
        ),
        (
            {"metric_definitions": [{"Name": "a", "Regex": "b", "Unit": "s"}]},
            "metric_definitions[0]",
            "the unknown key 'Unit'",
        ),
        ({"tags": [{"Key": "a"}]}, "tags[0].Value", "is missing"),
        ({"tags": {"a": 1}}, "tags['a']", "a str"),
        ({"input_mode": "file"}, "input_mode", "did you mean 'File'?"),
        ({"output_path": "out"}, "output_path", "write it as a URI: 'file:///"),
        ({"checkpoint_s3_uri": "gs://bucket"}, "checkpoint_s3_uri", "not supported"),
        ({"code_location": "s3://"}, "code_location", "names no bucket"),
        ({"output_kms_key": "k"}, "output_kms_key", "without output_path"),
        ({"checkpoint_local_path": "/x"}, "checkpoint_local_path", "without checkpoint_s3_uri"),
        ({"checkpoint_keep": 1}, "checkpoint_keep", "without checkpoint_s3_uri"),
        ({"checkpoint_keep": 0, "checkpoint_s3_uri": "s3://b"}, "checkpoint_keep", "at least 1"),
        ({"checkpoint_keep": 1.5, "checkpoint_s3_uri": "s3://b"}, "checkpoint_keep", "1.5"),
        ({"subnets": ["a"]}, "subnets", "without security_group_ids"),
        ({"security_group_ids": ["a"]}, "security_group_ids", "without subnets"),
        ({"max_wait": 86400}, "max_wait", "without use_spot_instances"),
        ({"disable_output_compression": True}, "disable_output_compression", "without output_path"),
        (
            {"training_repository_credentials_provider_arn": "a"},
            "training_repository_credentials_provider_arn",
            "without training_repository_access_mode",
        ),
        ({"instance_groups": []}, "instance_groups", "needs at least one group"),
        (
            {"instance_groups": [{"InstanceType": "ml.c5.xlarg", "InstanceCount": 1, "InstanceGroupName": "a"}]},
            "instance_type",
            "did you mean 'ml.c5.xlarge'?",
        ),
        (
            {
                "instance_count": 2,
                "instance_groups": [{"InstanceType": "ml.c5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}],
            },
            "instance_groups",
            "give only one of them",
        ),
        ({"debugger_hook_config": True}, "debugger_hook_config", "as a dict, or False"),
        ({"git_config": {"repo": "r"}}, "git_config", "clone the repository, and give its folder as source_dir"),
        ({"training_recipe": "r"}, "training_recipe", "as entry_point"),
        ({"max_wait": 5, "use_spot_instances": True}, "max_wait", "at least max_run"),
        ({"base_job_name": "my_job"}, "base_job_name", "write 'my-job'"),
        ({"image_uri": ""}, "image_uri", "is empty; give one, or leave it out"),
        ({"source_dir": ""}, "source_dir", "is empty"),
        ({"backend": ""}, "backend", "is empty"),
        ({"dependencies": ["lib", ""]}, "dependencies", "has an empty path"),
        ({"cpus": float("inf")}, "cpus", "from 0.01 to 2147483647, not inf"),
        ({"container_log_level": "INFO"}, "container_log_level", "an int"),
        ({"entry_point": None}, "entry_point", "nothing to run"),
        ({"entry_point": None, "image_uri": "i", "source_dir": "src"}, "source_dir", "without entry_point"),
        ({"command": ["./run"], "source_dir": "src"}, "command", "replaces entry_point"),
        ({"entry_point": None, "command": ["./run"]}, "command", "without source_dir"),
        ({"entry_point": None, "command": [], "source_dir": "src"}, "command", "is empty"),
        ({"entry_point": None, "command": "./run", "source_dir": "src"}, "command", "a list, not './run'"),
        ({"entry_point": None, "image_uri": "i", "arguments": ["x"]}, "arguments", "without entry_point"),
        ({"arguments": ["a\0b"]}, "arguments", "a NUL byte"),
        (
            {"entry_point": None, "image_uri": "i", "dependencies": ["lib"]},
            "dependencies",
            "needs entry_point",
        ),
    ],
)
def test_a_wrong_argument_is_refused_and_named_with_the_nearest_right_one(arguments, argument, words):
    error = refusal(**arguments)
    assert error.argument == (argument or "distribution['mpi']['processes_per_host']")
    assert words in str(error)


def test_a_command_is_carried_word_by_word_and_names_the_job():
    spec = Estimator(command=["bash", "run.sh", "-v", "-v"], source_dir="src").spec()
    assert spec.training_job_name.startswith("run-")
    assert json.loads(spec.hyperparameters["sagemaker_estimator_command"]) == ["bash", "run.sh", "-v", "-v"]
    assert "sagemaker_program" not in spec.hyperparameters


def test_arguments_are_given_by_name_only():
    with pytest.raises(InvalidArgument, match="takes no positional arguments"):
        Estimator("train.py")  # type: ignore[misc]


def test_a_changed_attribute_is_checked_again():
    estimator = Estimator(entry_point="train.py")
    estimator.instance_count = "2"  # type: ignore[assignment]
    with pytest.raises(InvalidArgument, match=r"^instance_count must be an int"):
        estimator.spec()


def test_set_hyperparameters_adds_and_replaces():
    estimator = Estimator(entry_point="train.py", hyperparameters={"lr": 0.1, "epochs": 1})
    estimator.set_hyperparameters(lr=0.2, name="x")
    assert estimator.spec().decoded.script == {"lr": 0.2, "epochs": 1, "name": "x"}
    with pytest.raises(InvalidArgument, match="reserved"):
        estimator.set_hyperparameters(sagemaker_program="x")
    assert estimator.spec().decoded.script == {"lr": 0.2, "epochs": 1, "name": "x"}


def test_what_the_user_passed_is_not_changed():
    given = {"lr": 0.1}
    Estimator(entry_point="train.py", hyperparameters=given).set_hyperparameters(lr=0.2)
    assert given == {"lr": 0.1}


def test_tags_may_be_a_dict():
    spec = Estimator(entry_point="train.py", tags={"team": "vision"}).spec()
    assert spec.to_request()["Tags"] == [{"Key": "team", "Value": "vision"}]


def test_paths_may_be_path_objects():
    estimator = Estimator(entry_point=Path("train.py"), source_dir=Path("src"), dependencies=[Path("lib")])
    source = estimator.source
    assert (source.entry_point, source.source_dir, source.dependencies) == ("train.py", "src", ("lib",))


def test_a_relative_output_path_is_fixed_when_it_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    estimator = Estimator(entry_point="train.py", output_path="file://./out")
    monkeypatch.chdir("/")
    assert estimator.spec().output_data_config.s3_output_path == f"file://{tmp_path}/out"


@pytest.mark.parametrize(
    ("arguments", "base"),
    [
        ({"entry_point": "code/train_digits.py"}, "train-digits"),
        ({"entry_point": "pkg/run.sh", "source_dir": "src"}, "run"),
        ({"entry_point": "train.py", "base_job_name": "digits"}, "digits"),
        ({"image_uri": "host:5000/team/my_image:1.2"}, "my-image"),
        ({"image_uri": "team/image@sha256:00ff"}, "image"),
    ],
)
def test_a_job_s_name_starts_with_what_it_runs(arguments, base):
    spec = Estimator(**arguments).spec()
    assert re.fullmatch(rf"{base}-\d{{4}}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{{3}}-[0-9a-f]{{6}}", spec.training_job_name)


def test_each_spec_has_a_new_name_unless_one_is_given():
    estimator = Estimator(entry_point="train.py")
    assert estimator.spec().training_job_name != estimator.spec().training_job_name
    assert estimator.spec(job_name="mine").training_job_name == "mine"
    with pytest.raises(InvalidArgument, match="write 'my-job'"):
        estimator.spec(job_name="my_job")


def test_making_an_estimator_and_its_spec_looks_at_no_file():
    estimator = Estimator(entry_point="not-there.py", source_dir="/not/there", dependencies=["/nor/this"])
    assert estimator.spec().decoded.reserved.program == "not-there.py"


def test_a_diagnosis_that_a_service_would_keep_to_itself_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(Estimator, "plan", lambda *given: SimpleNamespace(backend="sagemaker"))
    monkeypatch.setattr(launch, "run", lambda *given: pytest.fail("it was started"))
    with pytest.raises(InvalidArgument, match="what the ranks of a job on sagemaker record of their steps is not on"):
        Estimator(entry_point="train.py").diagnose()
