"""What is known of a local job at one moment, and the file in the job's folder that is the truth of it."""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from estimator_container.failures.verdict import Verdict

from ....errors import EstimatorError
from ....values.conform import conform, field_hints
from ....values.home import JobFolder, regular_file
from ...status import FINAL, AttemptRecord, Status

FORMAT = 4
"""Of the file. It grows with every change of what a job, an attempt or a verdict is made of."""
_READ = (3, FORMAT)
"""A record of format 3 does not say which machine its supervisor is on."""
_MOST_PROCESSES = 1 << 22
"""Of Linux: PID_MAX_LIMIT (linux/threads.h)."""
_NO_TIME_MORE = 253402300800.0
"""The year 10000, in seconds since 1970: what is shown of a time has four digits for a year."""

T = TypeVar("T")


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same number."""

    pid: int
    start: str
    """Its start time in clock ticks since boot: field 22 of `/proc/PID/stat`."""
    machine: str = field(default="", compare=False)
    """The name of its machine; empty where that is not known. The machines of a cluster may share a home."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a process of another machine, of which this one cannot say whether it runs."""
        return self.machine not in ("", _machine())

    @classmethod
    def from_pid(cls, pid: int) -> Process | None:
        """The process that has this number now; None when there is none, or only its zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else cls(pid, fields[19].decode(), _machine())

    @classmethod
    def started_as(cls, pid: int) -> Process:
        """A process that has just been started, though it may have been killed already."""
        return cls.from_pid(pid) or cls(pid, "", _machine())

    def is_alive(self) -> bool:
        """Whether the process still runs; a later process with the same number does not count."""
        return Process.from_pid(self.pid) == self

    def wait(self, seconds: float) -> None:
        """Return when it has ended, or after so many seconds; at once where the kernel cannot tell."""
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(self.pid)
            try:
                if self.is_alive():
                    select.select([fd], [], [], seconds)
            finally:
                os.close(fd)


@dataclass(frozen=True)
class Record:
    """The state of a job."""

    name: str
    status: Status
    backend: str
    hosts: tuple[str, ...]
    created: float
    """Seconds since 1970, as the other times."""
    attempts: tuple[AttemptRecord, ...] = ()
    """Those that have begun, from the first."""
    ended: float | None = None
    reason: str = ""
    """Why the job was stopped, or why nobody knows whether it goes on; else empty."""
    verdict: Verdict | None = None
    """Why the job failed; None if it did not."""
    output: str = ""
    """The URI below which the job's archives are."""
    model_data: str | None = None
    """The URI of `model.tar.gz`, once it is written."""
    supervisor: Process | None = None

    @property
    def attempt(self) -> int:
        """The number of the current attempt, from 1; 0 before the first has begun."""
        return len(self.attempts)

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""
        return self.status in FINAL

    def with_attempt(self, **changes: Any) -> Record:  # noqa: ANN401 - fields of AttemptRecord
        """The same with changes to the current attempt."""
        return replace(self, attempts=(*self.attempts[:-1], replace(self.attempts[-1], **changes)))

    def fields(self) -> dict[str, Any]:
        """All fields, as JSON values."""
        return asdict(self)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Record:
        """The opposite of `fields`. Raises ValueError, TypeError or KeyError for what that did not make."""
        attempts = [_made(AttemptRecord, {**each, "verdict": _verdict(each["verdict"])}) for each in fields["attempts"]]
        supervisor = _made(Process, fields["supervisor"]) if fields["supervisor"] else None
        if supervisor is not None and not 0 < supervisor.pid <= _MOST_PROCESSES:
            raise ValueError(f"{supervisor.pid} is not a process ID")
        verdict = _verdict(fields["verdict"])
        record = _made(cls, {**fields, "attempts": attempts, "verdict": verdict, "supervisor": supervisor})
        times = (record.created, record.ended, *(time for each in record.attempts for time in (each.began, each.ended)))
        for time in times:
            if time is not None and not 0 <= time < _NO_TIME_MORE:
                raise ValueError(f"{time} is not a time")
        for host in record.hosts:
            if PurePath(host).name != host:  # it becomes the name of a folder
                raise ValueError(f"{host!r} is not the name of a host")
        return record


def write_record(record: Record, folder: JobFolder, held: int | None = None) -> None:
    """Put it in the place of the one before, which whoever watches the folder sees. Raises OSError.

    It is whole, and on the disk, before it has its name. A job's client writes the first one, before there is a plan
    to supervise, and its supervisor all others: so there is no lock. Where that is on another machine, several clients
    may write at once what they have heard. `held` is an open descriptor of the folder, for the supervisor, which must
    not write into another one that has its name by now.
    """
    target = str(folder.record) if held is None else folder.record.name
    draft = f"{target}.new" if held is not None else f"{target}.{os.getpid()}-{os.urandom(4).hex()}.new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=held)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps({"format": FORMAT, **record.fields()}, indent=1))
            file.flush()
            os.fsync(fd)
        os.rename(draft, target, src_dir_fd=held, dst_dir_fd=held)
    except BaseException:  # a Ctrl-C, too
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=held)
        raise


def read_record(folder: JobFolder) -> Record | None:
    """What was written last; None if nothing was. Raises EstimatorError for what cannot be understood."""
    try:
        with open(folder.record, encoding="utf-8", opener=regular_file) as file:
            fields = json.load(file)
        written = fields.pop("format")
        if written not in _READ:
            raise ValueError(f"it was written by another version, in format {written}")
        return Record.from_fields({**fields, "name": folder.name})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        words = f"the record of the job {folder.name} cannot be read: {folder.record}: {error!r}"
        raise EstimatorError(
            f"{words}; its logs and outputs are in {folder.path}; remove that folder to forget the job"
        ) from None


def _machine() -> str:
    """As `machine.name`, for the imports of which every `ps` would wait."""
    return os.uname().nodename.partition(".")[0]


def _verdict(fields: Mapping[str, Any] | None) -> Verdict | None:
    return _made(Verdict, {"victims": (), **fields}) if fields else None


def _made(cls: type[T], fields: Mapping[str, Any]) -> T:
    """One of a dataclass, each of whose fields is of the type that it says. Raises ValueError or TypeError."""
    hints = field_hints(cls)
    return cls(**{name: conform(hints.get(name, object), value, name) for name, value in fields.items()})
