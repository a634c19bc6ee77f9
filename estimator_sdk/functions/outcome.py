"""What became of a function that ran as a job, out of the job's outputs."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EstimatorError
from ..values.home import temporary_folder
from .on_host import host, payload

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict

    from ..job.job import Job


def value_of(job: Job) -> Any:  # noqa: ANN401 - whatever the function returned
    """The function's return value on rank 0. Raises EstimatorError if there is none, or if it cannot be read."""
    uri = job.output_data
    if job.status != "Completed" or uri is None:
        raise EstimatorError(f"the function returned nothing, because its job did not complete: {job.why().rstrip()}")
    data = _member(uri, host.VALUE_FILE)
    if data is None:
        what = "the function has not returned, though rank 0 ended with code 0, as by sys.exit(0)"
        raise EstimatorError(f"{what}; let it return a value or None, and see the log of {job!r}")
    try:
        return payload.unpack(host.VALUE, data)
    except Exception as error:  # unpickling may raise anything
        what = f"the function has run, but its return value cannot be read here: {error}"
        raise EstimatorError(f"{what}; {uri} has it as {host.VALUE_FILE}") from error


def exception_of(job: Job, verdict: Verdict) -> Exception | None:
    """The exception that ended the job; None if there was none, or if it cannot be read here."""
    uri = job.output_data
    if uri is None or not verdict.is_user_failure or verdict.host is None:
        return None
    name = host.exception_file(verdict.host, verdict.rank)
    folder, _, archive = uri.rpartition("/")
    # Beside a world's first host, each has an archive of its own.
    for place in (uri, f"{folder}/hosts/{verdict.host}/{archive}"):
        try:
            data = _member(place, name)
            error = payload.unpack(host.EXCEPTION, data) if data is not None else None
        except Exception:  # the caller has JobFailed, which has the exception's text
            continue
        if isinstance(error, Exception):
            return error
    return None


def _member(uri: str, name: str) -> bytes | None:
    """A file of an archive; None if it is not in it. Raises EstimatorError and OSError."""
    from ..job import model_files

    with (
        temporary_folder(f"what is in {uri}") as folder,
        model_files.local_copy(uri, Path(folder)) as archive,
        tarfile.open(archive) as tar,
    ):
        for member in tar:
            if member.name in (name, f"./{name}"):  # archives differ in how they name what is at their top
                opened = tar.extractfile(member)
                return opened.read() if opened is not None else None
        return None
