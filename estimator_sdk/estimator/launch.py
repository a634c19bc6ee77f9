"""From an estimator to a running job: bundle the code, plan, start, show."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from estimator_container.contract.reserved import Reserved

from .. import backends
from ..backends.slurm import options
from ..code import channel as code_channel
from ..code import store as code_store
from ..display import notebook
from ..display.progress import LOGS, Logs, Progress
from ..errors import BackendError, InvalidArgument
from ..plan.plan import Plan
from ..spec import channel_names, instances
from ..spec.job_document import JobDocument
from ..spec.training_input import Inputs, frames
from ..values import job_name as job_names
from ..values.debugging import debug
from ..values.home import bundles_folder, secured, writing
from ..values.naming import suggestion
from . import secrets

if TYPE_CHECKING:
    from ..backends.port import StartedJob
    from ..code.source import Source
    from ..display.cell import Cell
    from ..job.job import Job


def plan(
    source: Source | None,
    make_spec: Callable[[str | None], JobDocument],
    backend: str | None,
    code_location: str | None = None,
    while_bundling: AbstractContextManager[None] | None = None,
) -> Plan:
    """The plan of a job on its backend; `make_spec` takes the place of the code bundle.

    Bundles the code, which starts nothing and writes nothing that is there already; it is uploaded to `code_location`
    when the plan is run. Raises InvalidArgument.
    """
    spec = make_spec(None)
    chosen = _backend_for(spec, backend)
    if source is not None:
        with while_bundling or nullcontext():
            place = bundle(source)
        spec = make_spec(code_store.uri_of(place, code_location) if code_location else str(place))
    return _planned(chosen, spec)


def request(
    source: Source | None,
    make_spec: Callable[[str | None], JobDocument],
    code_location: str | None,
    inputs: Inputs | None,
) -> dict[str, Any]:
    """A job's document for SageMaker; uploads to S3 what it needs. Raises InvalidArgument and BackendError."""
    from ..backends.sagemaker.backend import SageMakerBackend

    planned = plan(source, make_spec, SageMakerBackend.name, code_location)
    write_frames(planned, inputs)
    SageMakerBackend().prepare(planned)
    return dict(planned.request)


def write_frames(planned: Plan, inputs: Inputs | None) -> None:
    """Have Spark write the DataFrames among the inputs, for the hosts of a plan. Raises EstimatorError."""
    for where, files in frames(inputs):
        files.write(where, len(planned.hosts), max(1, planned.processes_per_host))


def check_told_here(planned: Plan) -> None:
    """Raises InvalidArgument for a job whose hosts would leave what they record elsewhere."""
    if backends.load(planned.backend).capabilities.is_remote:
        what = f"what the ranks of a job on {planned.backend} record of their steps is not on this machine"
        raise InvalidArgument("backend", f"{what}; use fit(), or diagnose the same job on another backend")


def plan_of(spec: JobDocument, backend: str | None, job_name: str | None) -> Plan:
    """The plan of a job that is given as a whole, under another name if one is given. Raises InvalidArgument."""
    secrets.refuse_hidden(spec)
    spec = code_channel.without(spec)
    if job_name is not None:
        spec = _renamed(spec, job_names.checked(job_name))
    return _planned(_backend_for(spec, backend), spec)


def _planned(chosen: backends.Backend, spec: JobDocument) -> Plan:
    """Raises InvalidArgument for what the backend cannot run."""
    spares = spec.decoded.reserved.spare_hosts
    if spares and not chosen.capabilities.has_spares:
        what = f"spare_hosts={spares} keeps more machines ready, but backend {chosen.name!r} has no choice of machines"
        raise InvalidArgument("spare_hosts", f"{what}; leave it out")
    if spec.decoded.reserved.slurm and not chosen.capabilities.is_scheduled:
        raise options.refused_on(chosen.name, spec.decoded.reserved.slurm)
    if spec.decoded.reserved.pool and not chosen.capabilities.has_pool:
        what = f"hosts names machines, but backend {chosen.name!r} has its own"
        raise InvalidArgument("hosts", f"{what}; leave it out, or use backend={backends.with_pool()!r}")
    if spec.instance_type in instances.ON_EXECUTORS and not chosen.capabilities.has_executors:
        what = f"instance_type is {spec.instance_type}, which asks for executors, but backend {chosen.name!r} has none"
        raise InvalidArgument("instance_type", f"{what}; leave out one of the two")
    if spec.decoded.reserved.queue and not chosen.capabilities.has_pool:
        what = f"queue=True waits for room on the machines of a pool, but backend {chosen.name!r} has none"
        raise InvalidArgument("queue", f"{what}; leave it out, or name machines with hosts=")
    planned = chosen.plan(spec)
    for name in ("cpus", "memory"):
        if getattr(planned, name) is not None and not chosen.capabilities.has_limits:
            what = f"{name} limits what a host may use, but backend {chosen.name!r} cannot limit hosts"
            raise InvalidArgument(name, f"{what}; leave it out, or use backend={backends.with_limits()!r}")
    debug(
        "%s: planned for %s: %d hosts, %d ranks", planned.job_name, chosen.name, len(planned.hosts), len(planned.ranks)
    )
    secrets.warn_of_secrets(planned)
    return planned


def _backend_for(spec: JobDocument, named: str | None) -> backends.Backend:
    """What is to plan the job. Raises InvalidArgument for names in it that no backend could use."""
    job_names.checked(spec.training_job_name, "TrainingJobName")
    channel_names.check(spec.input_data_config or ())
    if named is None and spec.decoded.reserved.pool:
        named = backends.with_pool()
    algorithm = spec.algorithm_specification
    if named is None:
        named = backends.choose(spec.instance_type, bool(algorithm and algorithm.training_image))
    return backends.load(named)


def _renamed(spec: JobDocument, name: str) -> JobDocument:
    told = {} if spec.decoded.reserved.job_name is None else Reserved(job_name=name).encode()
    hyperparameters = {**(spec.hyperparameters or {}), **told}
    return replace(spec, training_job_name=name, hyperparameters=hyperparameters or None)


@writing("the code bundle")
def bundle(source: Source) -> Path:
    """The code as an archive under the hash of its bytes, so that equal code is kept once. Raises EstimatorError."""
    folder = secured(bundles_folder())
    draft = folder / f".{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        place = folder / f"{source.bundle(draft)}.tar.gz"
        draft.replace(place)
        debug("the code bundle is %s, %d bytes", place, place.stat().st_size)
    finally:
        draft.unlink(missing_ok=True)
    return place


def checked_logs(logs: object) -> Logs:
    """What `fit(logs=)` says; True and False are taken as SageMaker's SDK takes them."""
    if isinstance(logs, bool):
        return "all" if logs else "none"
    for known in LOGS:
        if isinstance(logs, str) and logs.lower() == known:
            return known
    raise InvalidArgument("logs", f"logs must be one of {', '.join(map(repr, LOGS))}; {suggestion(logs, LOGS)}")


def run(plan: Plan, wait: bool, logs: Logs, out: TextIO | None = None) -> Job:
    """Start exactly what the plan says; with `wait` show it and return at its end.

    It is shown on `out`; without one in the notebook's cell that runs, else on standard output.

    Raises JobFailed when a job that is waited for fails, and BackendError when it can no longer be watched. A
    KeyboardInterrupt stops the job in good order and is raised again at its end; a second one leaves the job to its
    supervisor at once.
    """
    from ..job.job import Job

    # What takes time comes before the start: a Ctrl-C after it has to be heard where it stops the job.
    shown = _shown_by(plan, logs, out)
    local = backends.load(plan.backend).start(plan)
    job = Job(local)
    if not wait:
        return job
    progress = shown(local)
    try:
        _watch(local, job, progress)
        progress.ended(local, _goodput(local))
    finally:
        progress.close()
    job.wait()
    return job


def _watch(local: StartedJob, job: Job, progress: Progress | Cell) -> None:
    try:
        progress.started()
        _show(local, progress)
    except KeyboardInterrupt:
        progress.say("stopping; press Ctrl-C again to return without waiting")
        job.stop()
        _show(local, progress.again())
        progress.ended(local, _goodput(local))
        raise
    except BackendError as error:
        what = f"{error}; the job is still running, and Job.attach({job.name!r}) finds it"
        raise BackendError(what) from None


def _goodput(local: StartedJob) -> str:
    from ..job import accounting  # only once there is a job

    return accounting.goodput(local)


def _shown_by(plan: Plan, logs: Logs, out: TextIO | None) -> Callable[[StartedJob], Progress | Cell]:
    if out is not None or not notebook.is_here():
        return lambda local: Progress(plan, logs, out)
    from ..display.cell import Cell

    return lambda local: Cell(local, logs)


def _show(local: StartedJob, progress: Progress | Cell) -> None:
    for block in local.blocks(True, progress.on_event, progress.on_open_line):
        progress.on_block(block)
