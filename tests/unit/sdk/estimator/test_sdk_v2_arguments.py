import warnings

import pytest

from estimator_sdk import Estimator, InvalidArgument, PyTorch, TensorFlow
from estimator_sdk.estimator.sdk_v2_arguments import ArgumentIgnored

# The arguments of the classes of the same names in SageMaker's SDK, 2.257.
ESTIMATOR = """
    role instance_count instance_type keep_alive_period_in_seconds volume_size volume_kms_key max_run input_mode
    output_path output_kms_key base_job_name sagemaker_session tags subnets security_group_ids model_uri
    model_channel_name metric_definitions encrypt_inter_container_traffic use_spot_instances max_wait checkpoint_s3_uri
    checkpoint_local_path rules debugger_hook_config tensorboard_output_config enable_sagemaker_metrics
    enable_network_isolation profiler_config disable_profiler environment max_retry_attempts source_dir git_config
    hyperparameters container_log_level code_location entry_point dependencies instance_groups
    training_repository_access_mode training_repository_credentials_provider_arn enable_infra_check
    container_entry_point container_arguments disable_output_compression enable_remote_debug
    enable_session_tag_chaining training_plan instance_placement_config image_uri
""".split()
FRAMEWORK = [*ESTIMATOR, "py_version", "framework_version", "distribution", "compiler_config"]
UNSET = {"instance_count": 1, "instance_type": "local", "volume_size": 30, "max_run": 86400, "input_mode": "File"}
UNSET |= {"model_channel_name": "model", "container_log_level": 20, "dependencies": [], "entry_point": "train.py"}
SWITCHES = """
    encrypt_inter_container_traffic use_spot_instances enable_network_isolation disable_profiler enable_infra_check
    disable_output_compression enable_remote_debug enable_session_tag_chaining
""".split()


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Estimator, ESTIMATOR),
        (TensorFlow, [*FRAMEWORK, "model_dir"]),
        (PyTorch, [*FRAMEWORK, "training_recipe", "recipe_overrides"]),
    ],
)
def test_every_argument_of_the_sdk_is_taken(cls, names):
    given = {name: UNSET.get(name, False if name in SWITCHES else None) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(**given).spec().resource_config.instance_count == 1


def test_what_means_nothing_here_is_named_in_one_warning_at_the_line_that_says_it():
    with pytest.warns(ArgumentIgnored) as caught:
        PyTorch(entry_point="train.py", sagemaker_session=object(), compiler_config=object())  # type: ignore[call-arg]
    (warning,) = caught
    assert warning.filename == __file__
    assert "sagemaker_session (region, credentials and" in str(warning.message)
    assert "compiler_config (the training compiler is not used)" in str(warning.message)


def test_what_would_run_something_else_is_refused():
    with pytest.raises(InvalidArgument, match="put it into hyperparameters") as raised:
        TensorFlow(entry_point="train.py", model_dir="s3://a/b")  # type: ignore[call-arg]
    assert raised.value.argument == "model_dir"


def test_an_argument_that_nobody_has_is_an_error_still():
    with pytest.raises(InvalidArgument, match="TensorFlow has no argument 'sagemaker_sesion'"):
        TensorFlow(entry_point="train.py", sagemaker_sesion=1)  # type: ignore[call-arg]
