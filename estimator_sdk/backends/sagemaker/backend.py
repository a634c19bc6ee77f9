"""Amazon SageMaker: every host is an instance of the service, which needs no supervisor of ours.

The document that CreateTrainingJob is sent is the plan's `request`, as it can be printed, diffed, and given to
`aws sagemaker create-training-job --cli-input-json`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from estimator_container.contract import names as contract

from ...code import store as code_store
from ...errors import BackendError, EstimatorError, InvalidArgument, JobNotFound
from ...plan import distributions, inheritance, kernel_limits
from ...plan import local as local_plan
from ...plan.plan import ChannelPlan, HostPlan, Plan
from ...spec.job_document import Channel, JobDocument, ResourceConfig
from ..port import Finding, Summary, findings
from . import CAPABILITIES, faults, submitted
from .job import SageMakerJob, is_configured
from .request import complete
from .service import Service, Services
from .state import hosts_of


class SageMakerBackend:
    """Runs the hosts of a job as instances of Amazon SageMaker."""

    name = "sagemaker"
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job for the configured region. Raises InvalidArgument for what the service cannot do.

        Asks AWS only for what is not said: the account, for the default bucket, and the ARN of a role that is named.
        """
        service = Service()
        submit = spec.decoded.reserved.submit_directory
        code, kept = code_store.resolve(submit)
        if code is not None and not Path(code).is_file():
            code = None  # a place in the image
        uri = kept or (submit if submit and "://" in submit else None)
        if uri is not None and not uri.startswith("s3://"):
            what = f"code_location would keep the code at {uri}, which SageMaker instances cannot reach"
            raise InvalidArgument("code_location", f"{what}; give an s3:// URI, or leave it out")
        completed, code_uri = complete(spec, Path(code).name if code else None, uri, service)
        service.check(completed.to_request())
        return _plan(completed, code, code_uri, service.region)

    def prepare(self, plan: Plan) -> Service:
        """Put into S3 what the job needs, and return what it can be submitted with.

        Raises BackendError and InvalidArgument.
        """
        service = Service(plan.region)
        world = next((each.source for each in plan.channels if each.name == contract.WORLD_CHANNEL), None)
        for uri in (plan.output_path, plan.code_uri, world):
            if uri is not None:
                service.ensure_bucket(uri)
        code_store.upload(plan.code, plan.code_uri)
        if world is not None:
            _put_secret(world)
        return service

    def start(self, plan: Plan) -> SageMakerJob:
        """Put into S3 what the job needs, and submit exactly what the plan says; returns at once.

        A job that a KeyboardInterrupt meets while it is submitted is asked to stop.

        Raises BackendError and InvalidArgument, with nothing started.
        """
        service = self.prepare(plan)
        submitted.note(plan.job_name, service.region)
        job = SageMakerJob(plan.job_name, service)
        try:
            _submit(plan, service)
        except KeyboardInterrupt:
            with contextlib.suppress(EstimatorError):  # the request may have been done already, or never will be
                job.stop()
            raise
        hosts = tuple(host.name for host in plan.hosts)
        submitted.remember(Summary(plan.job_name, "InProgress", self.name, hosts, time.time(), None))
        return job

    def submitted(self) -> Sequence[SageMakerJob]:
        """The jobs that were submitted from here, as they were when they were last heard of; asks nobody."""
        services = Services()
        return [
            SageMakerJob(each.name, partial(services.of_region, submitted.region_of(each.name)), each)
            for each in submitted.summaries()
        ]

    def attach(self, name: str) -> SageMakerJob:
        """The job of that name that was submitted from here, or that is in the configured region.

        Asks nobody where there is no note of it and boto3, a region or credentials are missing. Raises JobNotFound,
        then without a word.
        """
        region = submitted.region_of(name)
        if region is None and not is_configured():
            raise JobNotFound("")
        try:
            job = SageMakerJob(name, Service(region))
            job.record()
        except (JobNotFound, BackendError) as error:
            raise JobNotFound(str(error)) from None
        return job

    def list(self, limit: int | None = None) -> list[SageMakerJob]:
        """The newest jobs of the configured region, the newest first, at most `limit`, or 100."""
        most = 100 if limit is None else limit
        service = Service()
        pages = service.pages(
            "sagemaker",
            "list_training_jobs",
            f"list the jobs in {service.region}",
            SortBy="CreationTime",
            SortOrder="Descending",
            PaginationConfig={"PageSize": min(100, most)},
        )
        names = (each["TrainingJobName"] for page in pages for each in page["TrainingJobSummaries"])
        return [SageMakerJob(name, service) for name in islice(names, most)]

    def check(self) -> Iterable[Finding]:
        """Look for what submitting a job needs."""
        from .check import CHECKS

        return findings(self.name, CHECKS)


def _plan(spec: JobDocument, code: str | None, code_uri: str | None, region: str) -> Plan:
    resources = spec.resource_config or ResourceConfig()
    groups = resources.instance_groups or ()
    instance_type = resources.instance_type or groups[0].instance_type
    names = hosts_of(resources.to_document())
    hosts = tuple(HostPlan(name, "", contract.DEFAULT_BASE_DIR, ("train",), {}) for name in names)
    algorithm, output = spec.algorithm_specification, spec.output_data_config
    plan = replace(
        local_plan.from_document(spec, SageMakerBackend.name, instance_type, hosts),
        region=region,
        channels=tuple(map(_channel, spec.input_data_config or ())),
        code=code,
        code_uri=code_uri,
        image=algorithm.training_image if algorithm else None,
        output_path=output.s3_output_path.rstrip("/") if output else "",
    )
    inheritance.refuse_inherited(plan)
    plan = distributions.distributed(plan, local_plan.gpus(instance_type, 0))
    return kernel_limits.check_containers(local_plan.with_command(plan, "python", None))


def _channel(channel: Channel) -> ChannelPlan:
    data = channel.data_source
    files = data.file_system_data_source
    source = data.s3_data_source.s3_uri if data.s3_data_source else ""
    if files is not None:
        source = f"{files.file_system_type} {files.file_system_id}:{files.directory_path}"
    config = {
        "TrainingInputMode": channel.input_mode or "File",
        "S3DistributionType": (data.s3_data_source and data.s3_data_source.s3_data_distribution_type)
        or "FullyReplicated",
    }
    return ChannelPlan(channel.channel_name, source, config)


def _put_secret(uri: str) -> None:
    """Random bytes that only who may read the job's inputs can read: its hosts, with its role.

    Those of a job of that name are left as they are, for it may be running.
    """
    from estimator_container.storage import StorageError, open_store

    folder, _, name = uri.rpartition("/")
    try:
        store = open_store(folder)
        if store.head(name) is None:
            store.write(name, os.urandom(contract.SECRET_BYTES))
    except StorageError as error:
        raise BackendError(f"cannot write the hosts' secret to {uri}, so nothing was started: {error}") from None


def _submit(plan: Plan, service: Service) -> None:
    try:
        service.call("sagemaker", "create_training_job", f"start the job {plan.job_name}", **plan.request)
    except faults.Refused as error:
        if error.code != "ResourceInUse":
            raise
        # A request whose answer was lost has been done, and its repetition meets its own job.
        if not (error.was_retried and _is_same(plan, SageMakerJob(plan.job_name, service).request())):
            raise InvalidArgument(
                "job_name", f"job_name {plan.job_name!r} is already taken in {service.region}; choose another name"
            ) from None


def _is_same(plan: Plan, description: dict[str, object]) -> bool:
    return all(plan.request.get(member) == description.get(member) for member in ("HyperParameters", "RoleArn"))
