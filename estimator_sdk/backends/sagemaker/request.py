"""The whole CreateTrainingJob document of a spec: what the service needs besides what the user has said.

What the service cannot do is refused here by name. The defaults are those of SageMaker's SDK, version 2.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

from estimator_container.contract import names as contract
from estimator_container.contract.reserved import Reserved

from ...errors import InvalidArgument
from ...spec import hyperparameters
from ...spec.job_document import JobDocument, OutputDataConfig, ResourceConfig
from ...spec.training_input import TrainingInput
from .service import Service
from .state import hosts_of

_ECR = re.compile(r"\d{12}\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws|on\.aws|sc2s|c2s)")
_ONLY_HERE = {
    "cpus": "the instance type sets how many CPUs a host has; leave it out",
    "memory": "the instance type sets how much memory a host has; leave it out",
    "stop_timeout": f"SageMaker always gives {contract.DEFAULT_STOP_TIMEOUT:g} seconds; leave it out",
    "restart_policy": "SageMaker tries again only what it has failed itself, with max_retry_attempts; leave it out",
}


def complete(
    spec: JobDocument, bundle_name: str | None, code_uri: str | None, service: Service
) -> tuple[JobDocument, str | None]:
    """The spec as the service takes it, and where the code bundle goes. The code has the file name `bundle_name`;
    `code_uri` is where it is to be kept, None leaving that to the default bucket.

    Raises InvalidArgument for what the service cannot do.
    """
    _check(spec, service.region)
    if bundle_name is not None and code_uri is None:
        code_uri = f"{service.default_place}/estimator-sdk/code/{bundle_name}"
    isolated = bool(spec.enable_network_isolation)
    encoded = {**(spec.hyperparameters or {}), **hyperparameters.launch_variables(spec.environment or {})}
    if code_uri is not None:
        # Where nothing can be fetched the code must be looked for in the channel, also by toolkits that are not ours.
        name = PurePosixPath(code_uri).name
        where = f"{contract.DEFAULT_BASE_DIR}/input/data/{contract.CODE_CHANNEL}/{name}" if isolated else code_uri
        encoded |= Reserved(submit_directory=where).encode()
    hyperparameters.check_service_limits(encoded)
    found = {contract.CODE_CHANNEL: code_uri, contract.WORLD_CHANNEL: _world_uri(spec, code_uri, service)}
    added = tuple(
        TrainingInput(uri, "FullyReplicated", input_mode="File").channel(name)
        for name, uri in found.items()
        if uri is not None
    )
    output = spec.output_data_config or OutputDataConfig(s3_output_path=service.default_place)
    made = replace(
        spec,
        role_arn=service.role_arn(spec.role_arn or ""),
        hyperparameters=encoded or None,
        input_data_config=(*(spec.input_data_config or ()), *added) or None,
        output_data_config=output,
    )
    return made, code_uri


def _world_uri(spec: JobDocument, code_uri: str | None, service: Service) -> str | None:
    """Where the secret goes that the job's hosts share, if there are several."""
    resources = (spec.resource_config or ResourceConfig()).to_document()
    reserved = spec.decoded.reserved
    program = reserved.program_in(spec.environment or {}) or reserved.command or reserved.steps
    if len(hosts_of(resources)) == 1 or not program:
        return None
    root = code_uri.rpartition("/")[0] if code_uri else f"{service.default_place}/estimator-sdk"
    return f"{root}/worlds/{spec.training_job_name}/{contract.WORLD_SECRET_FILE}"


def _check(spec: JobDocument, region: str) -> None:
    if not spec.role_arn:
        what = "role is missing, but SageMaker needs the ARN or the name of an IAM role that it may assume for the job"
        raise InvalidArgument("role", f"{what}; give role='arn:aws:iam::ACCOUNT:role/NAME'")
    for argument, why in _ONLY_HERE.items():
        given = getattr(spec.decoded.reserved, argument)
        if given is not None:
            raise InvalidArgument(argument, f"{argument} is {given}, but {why}")
    _check_instances(spec)
    _check_image(spec, region)
    for argument, uri in _uris(spec):
        if not uri.startswith("s3://"):
            raise InvalidArgument(
                argument,
                f"{argument} is {uri!r}, which SageMaker instances cannot reach; copy it to S3, for example "
                "with `aws s3 cp --recursive`, and give its s3:// URI",
            )


def _check_instances(spec: JobDocument) -> None:
    resources = spec.resource_config or ResourceConfig()
    types = [resources.instance_type, *(group.instance_type for group in resources.instance_groups or ())]
    for each in types:
        if each is not None and not each.startswith("ml."):
            what = f"instance_type {each!r} is this machine; backend 'sagemaker' takes types such as 'ml.m5.xlarge'"
            raise InvalidArgument("instance_type", what)


def _check_image(spec: JobDocument, region: str) -> None:
    algorithm = spec.algorithm_specification
    if algorithm is None or algorithm.algorithm_name is not None:
        return
    image = algorithm.training_image
    how = "push it to Amazon ECR, as docs/sagemaker.md shows, and give that URI"
    if image is None:
        raise InvalidArgument("image_uri", f"image_uri is missing, but SageMaker runs only images; {how}")
    found = _ECR.match(image)
    if found is None and "TrainingImageConfig" not in algorithm.other:
        raise InvalidArgument("image_uri", f"image_uri {image!r} is not in a registry that SageMaker reads; {how}")
    if found is not None and found["region"] != region:
        what = (
            f"image_uri is in {found['region']} but the job would run in {region}: SageMaker reads images of its region"
        )
        raise InvalidArgument("image_uri", f"{what}; push it to a repository in {region}, or set AWS_REGION")


def _uris(spec: JobDocument) -> list[tuple[str, str]]:
    """The places that a job names, under the arguments that they come from."""
    found = [
        (f"inputs[{channel.channel_name!r}]", channel.data_source.s3_data_source.s3_uri)
        for channel in spec.input_data_config or ()
        if channel.data_source.s3_data_source is not None
    ]
    if spec.output_data_config is not None:
        found.append(("output_path", spec.output_data_config.s3_output_path))
    if spec.checkpoint_config is not None:
        found.append(("checkpoint_s3_uri", spec.checkpoint_config.s3_uri))
    return found
