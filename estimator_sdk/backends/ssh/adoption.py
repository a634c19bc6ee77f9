"""Make a job known here that was started from another machine: all that is needed is ssh to its first machine."""

from __future__ import annotations

import json
from dataclasses import replace

from ...errors import BackendError, InvalidArgument, JobNotFound
from ...values.home import secured, write_private
from ..supervised.job_folder.record import Record, write_record
from .files import SshFolder, Whereabouts, jobs_on_pools
from .job import SshJob
from .pool import PoolHost
from .session.connection import Session


def adopt(host: PoolHost, name: str) -> SshJob:
    """The job of that name, whose supervisor is on that machine.

    Raises JobNotFound where there is none, InvalidArgument where a job of that name is known here already, and
    BackendError.
    """
    folder = SshFolder.for_job(name)
    if folder.path.exists():
        what = f"job {name!r} is known here already, in {folder.path}"
        raise InvalidArgument("job", f"{what}; see `estimator describe {name}`")
    session = Session(host)
    try:
        answer = session.ask("describe", name=name)
    finally:
        session.close()
    if "missing" in answer:
        raise JobNotFound(f"there is no job {name!r} on {host}")
    record = Record.from_fields({**answer["record"], "name": name})
    try:
        secured(jobs_on_pools())
        folder.path.mkdir(mode=0o700)
        write_private(folder.plan, answer["plan"])
        write_private(folder.request, json.dumps(answer["request"], indent=1))
        # Before there is a record: a job that has one, and is nowhere, would be taken for one that was never started.
        folder.write_whereabouts(Whereabouts(host, answer["folder"], f"file://{folder.path.parent}"))
        # What it says of its end is written once its outputs are here.
        write_record(_as_begun(record, f"file://{folder.output}"), folder)
    except OSError as error:
        raise BackendError(f"the job {name} cannot be kept in {folder.path}: {error}") from None
    return SshJob(folder)


def _as_begun(record: Record, output: str) -> Record:
    if record.output.startswith("s3://"):
        output = record.output
    return replace(
        record,
        status="InProgress",
        ended=None,
        verdict=None,
        reason="",
        model_data=None,
        output=output,
        supervisor=None,
    )
