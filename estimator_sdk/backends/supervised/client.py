"""The client's side of starting a local job: pass its plan to a new supervisor."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...errors import BackendError, InvalidArgument
from ...plan.plan import Plan
from ...values.debugging import debug
from ...values.home import JobFolder, private_file, secured, write_private
from . import detached
from .job import LEAVING_SECONDS, LocalJob, leaving
from .job_folder.record import Process, Record, write_record
from .job_folder.supervision import supervisors
from .stopping import STOPPED_BY

MAIN = str(Path(__file__).parent)


def start(plan: Plan, variables: Mapping[str, str] | None = None, inherited: Collection[int] = ()) -> LocalJob:
    """Pass a plan to a new supervisor, and return without waiting for it.

    It has `variables` besides this process's own, and the descriptors in `inherited`.

    Raises InvalidArgument when a job of that name exists, and BackendError when the disk does not take the job's
    folder or its record.
    """
    folder, record = JobFolder.for_job(plan.job_name), first_record(plan)
    earlier = leaving.pop(plan.job_name, None)
    if earlier is not None:  # that job's folder was removed, and its name is free
        earlier.wait()
    try:
        supervisor = _start(plan, folder, record, partial(detached.start, variables=variables, inherited=inherited))
    except OSError as error:
        raise BackendError(
            f"the job {plan.job_name} could not be started: {error}; set ESTIMATOR_HOME to a folder that you can "
            "write to, with free space"
        ) from None
    debug("%s: the supervisor is process %d, its folder %s", plan.job_name, supervisor.pid, folder.path)
    assert supervisor.stdin is not None
    # One that was killed takes no plan: the state of the job says so, to everybody.
    with contextlib.suppress(BrokenPipeError), supervisor.stdin as pipe:
        pipe.write(plan.to_json().encode())
    return LocalJob(folder, supervisor)


def first_record(plan: Plan) -> Record:
    """Of a job that is about to be started."""
    output = f"{plan.output_path}/{plan.job_name}/output"
    hosts = tuple(host.name for host in plan.hosts)
    return Record(plan.job_name, "InProgress", plan.backend, hosts, time.time(), output=output)


@contextlib.contextmanager
def new_folder(plan: Plan, folder: JobFolder) -> Iterator[None]:
    """Make the folder of a new job, with what runs there for people; it is removed where the block raises.

    Raises InvalidArgument for a name that is taken, and OSError.
    """
    secured(folder.path.parent)
    try:
        folder.path.mkdir(mode=0o700)
    except FileExistsError:
        raise InvalidArgument(
            "job_name",
            f"job_name {plan.job_name!r} is already taken by the job in {folder.path}; choose another name",
        ) from None
    try:
        shown = plan.without_secrets()
        write_private(folder.plan, f"{shown}\n", errors="backslashreplace")
        write_private(folder.request, json.dumps(shown.request, indent=1))
        yield
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)  # nothing of a job that never was, not even its name
        raise


def _start(
    plan: Plan, folder: JobFolder, record: Record, start_detached: Callable[..., subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes]:
    supervisor = None
    with new_folder(plan, folder):
        try:
            with open(folder.supervisor_log, "wb", opener=private_file) as log:
                supervisor = start_detached(MAIN, str(folder.path), log, blocked=STOPPED_BY)
            # Who it is, is known before it says a word: so one that never does is missed.
            _wait_for_earlier(folder, supervisor.pid)
            write_record(replace(record, supervisor=Process.started_as(supervisor.pid)), folder)
        except BaseException:
            if supervisor is not None:
                supervisor.kill()
                supervisor.communicate()
            raise
    return supervisor


def _wait_for_earlier(folder: JobFolder, supervisor: int) -> None:
    """Raises InvalidArgument where an earlier job of that name, whose folder was removed, does not end."""
    for earlier in supervisors(folder):
        if earlier.pid == supervisor:
            continue
        earlier.wait(LEAVING_SECONDS)
        if earlier.is_alive():
            what = f"an earlier job {folder.name!r}, whose folder was removed, still runs as process {earlier.pid}"
            raise InvalidArgument("job_name", f"job_name: {what}; end that process, or choose another name")
