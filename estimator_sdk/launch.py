"""From an estimator to a running job: bundle the code, plan, start, show."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from . import backends, code_store
from .errors import InvalidArgument
from .home import bundles_folder
from .naming import suggestion
from .plan import Plan
from .progress import LOGS, Logs, Progress

if TYPE_CHECKING:
    from .job import Job
    from .job_port import StartedJob
    from .source import Source
    from .spec import JobSpec


def plan(
    source: Source | None,
    make_spec: Callable[[str | None], JobSpec],
    backend: str | None,
    code_location: str | None = None,
) -> Plan:
    """The plan of a job on its backend; `make_spec` takes the place of the code bundle.

    Bundles the code, which starts nothing and writes nothing that is there already; it is uploaded to `code_location`
    when the plan is run. Raises InvalidArgument.
    """
    spec = make_spec(None)
    chosen = backends.load(backend or backends.choose(*_type_and_image(spec)))
    if source is None:
        return chosen.plan(spec)
    place = bundle(source)
    return chosen.plan(make_spec(code_store.uri_of(place, code_location) if code_location else str(place)))


def _type_and_image(spec: JobSpec) -> tuple[str, str | None]:
    resources, algorithm = spec.resource_config, spec.algorithm_specification
    instance_type = resources.instance_type if resources else None
    if resources and resources.instance_groups:
        instance_type = resources.instance_groups[0].instance_type
    return instance_type or "local", algorithm.training_image if algorithm else None


def bundle(source: Source) -> Path:
    """The code as an archive under the hash of its bytes, so that equal code is kept once."""
    folder = bundles_folder()
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        place = folder / f"{source.bundle(draft)}.tar.gz"
        draft.replace(place)
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
    raise InvalidArgument("logs", f"logs must be one of {', '.join(map(repr, LOGS))}; {suggestion(str(logs), LOGS)}")


def run(plan: Plan, wait: bool, logs: Logs) -> Job:
    """Start exactly what the plan says; with `wait` show it and return at its end.

    Raises JobFailed when a job that is waited for fails. A KeyboardInterrupt stops the job in good
    order and is raised again at its end; a second one leaves the job to its supervisor at once.
    """
    from .job import Job

    local = backends.load(plan.backend).start(plan)
    job = Job(local)
    if not wait:
        return job
    progress = Progress(plan, logs)
    progress.started()
    try:
        _show(local, progress)
    except KeyboardInterrupt:
        progress.say("stopping; a second Ctrl-C leaves it to stop by itself")
        job.stop()
        _show(local, Progress(plan, "none"))
        progress.ended(job)
        raise
    progress.ended(job)
    job.wait()
    return job


def _show(local: StartedJob, progress: Progress) -> None:
    for line in local.lines(follow=True, on_event=progress.on_event):
        progress.on_line(line)
