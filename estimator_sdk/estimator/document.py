"""From an estimator's arguments to the CreateTrainingJob document that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from estimator_container.contract import names as contract
from estimator_container.contract.reserved import Reserved

from ..spec import distributions, steps_argument
from ..spec import hyperparameters as encoding
from ..spec import job_document as documents
from . import checks, service_arguments
from .arguments import Arguments
from .job_spec import JobSpec


class Code(NamedTuple):
    """The user's code in a job."""

    program: str | None
    """The entry point, relative to the code folder; None where there is none, but steps."""
    uri: str | None
    """Where the bundle is, once it is known."""


def job_spec(
    given: Arguments, name: str, image: str | None, code: Code | None, channels: Sequence[documents.Channel]
) -> JobSpec:
    """The job of that name, without code where the image's own program runs. Raises InvalidArgument."""
    return JobSpec(
        training_job_name=name,
        algorithm_specification=documents.AlgorithmSpecification(
            training_image=image,
            training_input_mode=given.input_mode,
            metric_definitions=checks.metric_definitions(given.metric_definitions),
            enable_sagemaker_metrics_time_series=given.enable_sagemaker_metrics,
            container_entrypoint=_tuple(given.container_entry_point),
            container_arguments=_tuple(given.container_arguments),
            other=service_arguments.image_config(given),
        ),
        role_arn=given.role,
        hyperparameters=_hyperparameters(given, name, code),
        input_data_config=(*channels, *service_arguments.model_channel(given)) or None,
        output_data_config=_output(given),
        resource_config=service_arguments.resources(given),
        vpc_config=_vpc(given),
        stopping_condition=documents.StoppingCondition(
            max_runtime_in_seconds=given.max_run, max_wait_time_in_seconds=given.max_wait
        ),
        tags=checks.tags(given.tags),
        # False is what an absent member means to the service.
        enable_network_isolation=given.enable_network_isolation or None,
        enable_inter_container_traffic_encryption=given.encrypt_inter_container_traffic or None,
        enable_managed_spot_training=given.use_spot_instances or None,
        checkpoint_config=_checkpoints(given),
        environment=given.environment,
        retry_strategy=_retries(given),
        other=service_arguments.job_members(given),
    )


def _hyperparameters(given: Arguments, name: str, code: Code | None) -> dict[str, str]:
    encoded = {**encoding.encode(given.hyperparameters or {}), **_reserved(given, name, code).encode()}
    encoding.check_count(encoded)
    return encoded


def _reserved(given: Arguments, name: str, code: Code | None) -> Reserved:
    chosen, distribution = given.inherit_environment, distributions.parse(given.distribution)
    told = Reserved(
        stop_timeout=None if given.stop_timeout == contract.DEFAULT_STOP_TIMEOUT else given.stop_timeout,
        hang_timeout=None if given.hang_timeout == contract.DEFAULT_HANG_TIMEOUT else given.hang_timeout,
        cpus=given.cpus,
        memory=given.memory,
        checkpoint_keep=given.checkpoint_keep,
        restart_policy=given.restart_policy.to_document() if given.restart_policy is not None else None,
        spare_hosts=given.spare_hosts or None,
        slurm=_slurm(given),
        pool=_pool(given),
        queue=given.queue or None,
        arguments=_tuple(given.arguments),
        command=_tuple(given.command),
        steps=steps_argument.parse(given.steps) or None,
        inherit_environment=chosen if isinstance(chosen, bool) else _tuple(chosen),
    )
    if code is not None:  # an image with a program of its own may refuse what it does not know
        told = replace(
            told,
            program=code.program,
            submit_directory=code.uri,
            container_log_level=given.container_log_level,
            job_name=name,
        )
    return told if distribution is None else distribution.added_to(told)


def _slurm(given: Arguments) -> dict[str, object] | None:
    """What the cluster is asked for. Raises InvalidArgument."""
    if given.gpus is None:
        return given.slurm.to_document() if given.slurm is not None else None
    from ..backends.slurm.options import SlurmOptions

    options = given.slurm or SlurmOptions()
    return replace(options, gpus=given.gpus).to_document()


def _pool(given: Arguments) -> tuple[dict[str, object], ...] | None:
    """The machines that are named. Raises InvalidArgument."""
    if given.hosts is None and given.hostfile is None:
        return None
    from ..backends.ssh import pool  # most jobs have none

    found = pool.from_argument(given.hosts) if given.hosts is not None else pool.from_file(str(given.hostfile))
    return tuple(each.to_document() for each in found)


def _output(given: Arguments) -> documents.OutputDataConfig | None:
    if given.output_path is None:
        return None
    return documents.OutputDataConfig(
        s3_output_path=given.output_path,
        kms_key_id=given.output_kms_key,
        compression_type="NONE" if given.disable_output_compression else None,
    )


def _vpc(given: Arguments) -> documents.VpcConfig | None:
    if given.subnets is None or given.security_group_ids is None:
        return None
    return documents.VpcConfig(subnets=tuple(given.subnets), security_group_ids=tuple(given.security_group_ids))


def _checkpoints(given: Arguments) -> documents.CheckpointConfig | None:
    if given.checkpoint_s3_uri is None:
        return None
    return documents.CheckpointConfig(s3_uri=given.checkpoint_s3_uri, local_path=given.checkpoint_local_path)


def _retries(given: Arguments) -> documents.RetryStrategy | None:
    if given.max_retry_attempts is None:
        return None
    return documents.RetryStrategy(maximum_retry_attempts=given.max_retry_attempts)


def _tuple(given: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)
