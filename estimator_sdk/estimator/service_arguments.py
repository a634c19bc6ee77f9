"""The arguments that only SageMaker's instances have a use for, as members of the CreateTrainingJob document."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..spec import job_document as documents
from ..spec.training_input import TrainingInput
from .arguments import Arguments

# "Deploy pre-trained models" in SageMaker's SDK: how a channel says that it holds a model.
_MODEL_CONTENT = "application/x-sagemaker-model"


def resources(estimator: Arguments) -> documents.ResourceConfig:
    """The instances, of one type or in groups."""
    groups = None if estimator.instance_groups is None else tuple(estimator.instance_groups)
    placement = estimator.instance_placement_config
    return documents.ResourceConfig(
        instance_type=None if groups else estimator.instance_type,
        instance_count=None if groups else estimator.instance_count,
        instance_groups=groups,
        volume_size_in_gb=estimator.volume_size,
        volume_kms_key_id=estimator.volume_kms_key,
        keep_alive_period_in_seconds=estimator.keep_alive_period_in_seconds,
        training_plan_arn=estimator.training_plan,
        other={} if placement is None else {"InstancePlacementConfig": placement},
    )


def image_config(estimator: Arguments) -> dict[str, object]:
    """How the image is pulled if it is not in Amazon ECR: a member of `AlgorithmSpecification`."""
    mode, provider = estimator.training_repository_access_mode, estimator.training_repository_credentials_provider_arn
    if mode is None:
        return {}
    config: dict[str, object] = {"TrainingRepositoryAccessMode": mode}
    if provider is not None:
        config["TrainingRepositoryAuthConfig"] = {"TrainingRepositoryCredentialsProviderArn": provider}
    return {"TrainingImageConfig": config}


def job_members(estimator: Arguments) -> dict[str, object]:
    """The members of the document itself that have no type of their own."""
    if estimator.debugger_hook_config is True:
        what = "debugger_hook_config is True; give the DebugHookConfig of CreateTrainingJob as a dict, or False"
        raise InvalidArgument("debugger_hook_config", what)
    members: dict[str, object] = {
        "DebugHookConfig": estimator.debugger_hook_config or None,
        "DebugRuleConfigurations": estimator.rules,
        "TensorBoardOutputConfig": estimator.tensorboard_output_config,
        "ProfilerConfig": {"DisableProfiler": True} if estimator.disable_profiler else estimator.profiler_config,
        # False is what an absent member means to the service.
        "RemoteDebugConfig": {"EnableRemoteDebug": True} if estimator.enable_remote_debug else None,
        "InfraCheckConfig": {"EnableInfraCheck": True} if estimator.enable_infra_check else None,
        "SessionChainingConfig": {"EnableSessionTagChaining": True} if estimator.enable_session_tag_chaining else None,
    }
    return {name: value for name, value in members.items() if value is not None}


def model_channel(estimator: Arguments) -> tuple[documents.Channel, ...]:
    """The channel with `model_uri`, if there is one."""
    if estimator.model_uri is None:
        return ()
    given = TrainingInput(estimator.model_uri, "FullyReplicated", content_type=_MODEL_CONTENT, input_mode="File")
    return (given.channel(estimator.model_channel_name),)
