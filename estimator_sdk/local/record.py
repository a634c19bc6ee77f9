"""The state of a local job, in a file that its supervisor replaces and everybody reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from estimator_container.verdict import Verdict

from ..errors import EstimatorError, JobNotFound
from ..home import JobFolder, jobs_folder
from ..naming import suggestion

FORMAT = 1
Status = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
"""The values of TrainingJobStatus in SageMaker's DescribeTrainingJob."""


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same number."""

    pid: int
    start: str
    """Its start time in clock ticks since boot: field 22 of `/proc/PID/stat`."""

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this number now; None when there is none, or only its zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else cls(pid, fields[19].decode())

    def is_alive(self) -> bool:
        return Process.of(self.pid) == self


@dataclass(frozen=True)
class Record:
    """What is known of a job at one moment."""

    name: str
    status: Status
    backend: str
    hosts: tuple[str, ...]
    created: float
    """Seconds since 1970, as the other times."""
    attempt: int = 0
    """The number of the current attempt, from 1; 0 before the first has begun."""
    ended: float | None = None
    reason: str = ""
    """Why it was stopped, where it was."""
    verdict: Verdict | None = None
    """Why it failed, where it did."""
    output: str = ""
    """The URI below which the job's archives are."""
    model_data: str | None = None
    """The URI of `model.tar.gz`, once it is written."""
    supervisor: Process | None = None

    @property
    def is_final(self) -> bool:
        return self.status in ("Completed", "Failed", "Stopped")

    def write(self, folder: JobFolder) -> None:
        """Put this state in the place of the one before."""
        draft = folder.record.with_suffix(".new")
        draft.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1), encoding="utf-8")
        draft.replace(folder.record)


def read(folder: JobFolder) -> Record:
    """The last state of a job.

    A job whose supervisor is gone before it wrote the end has failed. Raises JobNotFound when there is no
    such job, and EstimatorError when its record cannot be understood.
    """
    record = _parse(folder)
    supervisor = record.supervisor
    if record.is_final or supervisor is None or supervisor.is_alive():
        return record
    record = _parse(folder)  # it may have written the end just before it left
    if record.is_final:
        return record
    message = (
        f"the supervisor of {record.name} (process {supervisor.pid}) ended without a result, and its hosts with it; "
        f"see {folder.supervisor_log}"
    )
    return replace(record, status="Failed", verdict=Verdict("platform", message))


def _parse(folder: JobFolder) -> Record:
    try:
        text = folder.record.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = [path.name for path in jobs_folder().glob("*")] if jobs_folder().exists() else []
        hint = f"; {suggestion(folder.name, known)}" if known else ""
        raise JobNotFound(f"there is no job {folder.name!r} in {jobs_folder()}{hint}") from None
    try:
        fields: dict[str, Any] = json.loads(text)
        if fields.pop("format") != FORMAT:
            raise ValueError("it was written by another version")
        return Record(
            **{
                **fields,
                "hosts": tuple(fields["hosts"]),
                "verdict": Verdict.from_json(json.dumps(fields["verdict"])) if fields["verdict"] else None,
                "supervisor": Process(**fields["supervisor"]) if fields["supervisor"] else None,
            }
        )
    except (ValueError, TypeError, KeyError) as error:
        raise EstimatorError(f"the record of the job {folder.name} cannot be read: {folder.record}: {error}") from None
