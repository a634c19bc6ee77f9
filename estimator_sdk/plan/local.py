"""The parts of a plan that backends share, above all local ones: hosts, channels, the command, what cannot run here."""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from estimator_container.contract import entry_point
from estimator_container.contract import names as contract
from estimator_container.contract.reserved import Reserved
from estimator_container.host import gpus as host_gpus
from estimator_container.host.preparation import requirements
from estimator_container.runtime.errors import ConfigurationError

from ..code import store as code_store
from ..errors import InvalidArgument
from ..spec import environment_argument, hyperparameters, instances, limits
from ..spec.job_document import JobDocument, ResourceConfig
from ..spec.restart_policy import RestartPolicy
from ..values import uris
from ..values.home import jobs_folder
from . import local_channels
from .plan import DEFAULT_CHECKPOINT_KEEP, DEFAULT_CHECKPOINTS, HostPlan, Plan, StepPlan


def from_document(spec: JobDocument, backend: str, instance_type: str, hosts: tuple[HostPlan, ...]) -> Plan:
    """What a plan has from the document on every backend: no ranks, command and channels yet.

    Raises InvalidArgument: a job that was not made by an Estimator has not been checked.
    """
    checkpoints, retries, stopping = spec.checkpoint_config, spec.retry_strategy, spec.stopping_condition
    max_run = stopping.max_runtime_in_seconds if stopping else None
    limits.check("max_run", max_run)
    return Plan(
        job_name=spec.training_job_name,
        backend=backend,
        instance_type=instance_type,
        hosts=hosts,
        ranks=(),
        distribution="none",
        program=spec.decoded.reserved.program_in(spec.environment or {}),
        command=(),
        hyperparameters=dict(spec.hyperparameters or {}),
        environment=dict(spec.environment or {}),
        checkpoint_uri=checkpoints.s3_uri if checkpoints else None,
        checkpoint_path=(checkpoints and checkpoints.local_path) or DEFAULT_CHECKPOINTS,
        max_retry_attempts=retries.maximum_retry_attempts if retries else 0,
        request=spec.to_request(),
        max_run=float(limits.DEFAULT_MAX_RUN if max_run is None else max_run),
    )


def base(spec: JobDocument, backend: str, host: Callable[[str, int, int], HostPlan], jobs: Path | None = None) -> Plan:
    """A plan without a distribution; `host` makes each host of its name, its index and the number of hosts.

    Outputs go where the job says or, without a word, into `jobs`, which is `jobs_folder()` unless it is given.

    Raises InvalidArgument for what no backend of this machine can do.
    """
    if spec.checkpoint_config is not None:
        uris.check_store("checkpoint_s3_uri", spec.checkpoint_config.s3_uri)
    encoded = {**(spec.hyperparameters or {}), **hyperparameters.launch_variables(spec.environment or {})}
    reserved = spec.decoded.reserved
    resources = spec.resource_config or ResourceConfig()
    if resources.instance_groups:
        what = "instance_groups: a job on this machine has instances of only one type"
        raise InvalidArgument("instance_groups", f"{what}; give instance_type and instance_count")
    count = 1 if resources.instance_count is None else resources.instance_count
    limits.check("instance_count", count)  # a job that was not made by an Estimator has not been
    code, code_uri = code_store.resolve(reserved.submit_directory)
    if code_uri is not None:
        uris.check_store("code_location", code_uri)
    if code is not None:
        encoded |= Reserved(submit_directory=code).encode()  # hosts of this machine take it from here
    hosts = tuple(host(f"algo-{index + 1}", index, count) for index in range(count))
    return replace(
        from_document(spec, backend, spec.instance_type, hosts),
        hyperparameters=encoded,
        channels=local_channels.plans(spec),
        code=code,
        code_uri=code_uri,
        output_path=_output_path(spec, count, jobs or jobs_folder()),
        checkpoint_keep=reserved.checkpoint_keep or DEFAULT_CHECKPOINT_KEEP,
        restart_policy=_restart_policy(reserved),
        stop_timeout=float(contract.DEFAULT_STOP_TIMEOUT if reserved.stop_timeout is None else reserved.stop_timeout),
        cpus=reserved.cpus,
        memory=reserved.memory,
    )


def gpus(instance_type: str, of_this_machine: int) -> int:
    """The GPUs of one host of a type. Raises InvalidArgument for `local_gpu` on a machine without one."""
    of_type = instances.gpus(instance_type)
    if of_type is not None:
        return of_type
    if of_this_machine == 0:
        raise InvalidArgument(
            "instance_type", f"instance_type {instance_type!r} needs a GPU, but this machine has none; use 'local'"
        )
    return of_this_machine


def shared_gpus(plan: Plan, variables: Mapping[str, str]) -> tuple[Plan, int]:
    """The plan with this machine's GPUs shared among its hosts, and how many each gets; `variables` are the hosts'.

    Instance types with GPUs that are not of this machine only say how many ranks a host has, as a rehearsal.
    Raises InvalidArgument where there is no GPU, or where they cannot be shared.
    """
    if instances.gpus(plan.instance_type) is not None:
        return plan, gpus(plan.instance_type, 0)
    names, hosts = host_gpus.visible(variables) if host_gpus.exist() else [], len(plan.hosts)
    each = gpus(plan.instance_type, len(names)) // hosts
    if len(names) % hosts:
        what = f"instance_count is {hosts}, but the {len(names)} GPUs of this machine cannot be divided evenly by that"
        how = "choose a divisor of it, or set CUDA_VISIBLE_DEVICES to the GPUs that the job may use"
        raise InvalidArgument("instance_count", f"{what}; {how}")
    if each > 1 and any(name.startswith(host_gpus.MIG) for name in names):
        what = f"each host would get {each} MIG devices, but CUDA lets a process use only one"
        raise InvalidArgument("instance_count", f"{what}; use instance_count={len(names)}, one for each")
    shared = (
        replace(host, environment={**host.environment, contract.GPU_SHARE: f"{number}/{hosts}"})
        for number, host in enumerate(plan.hosts)
    )
    return replace(plan, hosts=tuple(shared)), each


def with_command(plan: Plan, python: str, overlay: Path | None) -> Plan:
    """The plan with what its ranks run; `overlay` is the environment that requirements would be installed to.

    Raises InvalidArgument when the code does not hold the entry point, for steps that are none, and for names and
    values that no process can be given.
    """
    hyperparameters.check_names(plan.hyperparameters)
    environment_argument.check(plan.environment)
    steps, words = plan.decoded.reserved.steps, plan.decoded.reserved.command
    try:
        arguments = plan.decoded.arguments
    except ConfigurationError as error:
        raise InvalidArgument("hyperparameters", f"hyperparameters: {error}") from None
    if plan.code is None or (plan.program is None and words is None and steps is None):
        return plan
    with _opened(plan.code) as bundle:
        files = {member.name: member for member in bundle.getmembers() if not member.isdir()}
        program = None if steps else _program(plan.program or "", words, bundle, files)
    is_package = isinstance(program, entry_point.Program) and program.is_package
    if overlay is not None and (requirements.FILE in files or is_package):
        python = str(overlay / "bin" / "python")
    elif overlay is not None and isinstance(program, entry_point.CommandLine):
        _check_on_path(program.command(python, False)[0], python)
    in_world = plan.distribution != "none"
    if program is None:
        made = (StepPlan(step.name, tuple(step.command(python, in_world))) for step in steps or ())
        return replace(plan, steps=tuple(made))
    return replace(plan, command=tuple(program.command(python, in_world, arguments)))


@contextmanager
def _opened(code: str) -> Iterator[tarfile.TarFile]:
    """The bundle of the code. Raises InvalidArgument for what is none: a document may name anything."""
    try:
        with tarfile.open(code) as bundle:
            yield bundle
    except InvalidArgument:
        raise
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        name = contract.SUBMIT_DIRECTORY
        what = f"{name} is {code}, which cannot be read as an archive of code: {error}"
        raise InvalidArgument(name, f"{what}; give the path of a .tar.gz") from None


def _program(
    name: str, words: tuple[str, ...] | None, bundle: tarfile.TarFile, files: Mapping[str, tarfile.TarInfo]
) -> entry_point.Program | entry_point.CommandLine:
    def head(file: str) -> bytes:
        opened = bundle.extractfile(files[file])
        return opened.read(entry_point.HEAD_BYTES) if opened else b""

    if words is not None:
        return entry_point.CommandLine(words)
    try:
        return entry_point.program(name, files, head)
    except ConfigurationError as error:
        raise InvalidArgument("entry_point", f"entry_point: {error}") from None


def _check_on_path(program: str, python: str) -> None:
    """Raises InvalidArgument for a program that this machine does not have, where nothing will bring it."""
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", os.defpath)])
    if "/" not in program and shutil.which(program, path=path) is None:
        what = f"command: there is no program {program!r} on PATH"
        raise InvalidArgument("command", f"{what}; install it, or write ./{program} for one in source_dir")


def _restart_policy(reserved: Reserved) -> RestartPolicy | None:
    """Raises InvalidArgument: a job that was not made by an Estimator has not been checked."""
    given = reserved.restart_policy
    return None if given is None else RestartPolicy.from_document(given)


def _output_path(spec: JobDocument, hosts: int, jobs: Path) -> str:
    output = spec.output_data_config
    if output and output.kms_key_id:
        what = "output_kms_key is for outputs that SageMaker writes, but this job runs on this machine"
        raise InvalidArgument("output_kms_key", f"{what}; leave it out, and let the bucket encrypt by default")
    if output and output.compression_type == "NONE":
        what = "OutputDataConfig.CompressionType is 'NONE', but outputs of a job on this machine are .tar.gz archives"
        raise InvalidArgument("OutputDataConfig.CompressionType", f"{what}; leave it out")
    path = output.s3_output_path if output else None
    if not path:
        return f"file://{jobs}"
    uris.check_store("output_path", path)
    host = f"hosts/algo-{hosts}/" if hosts > 1 else ""
    uris.check_room("output_path", path, f"{spec.training_job_name}/output/{host}output.tar.gz")
    return path.rstrip("/")
