"""The state of the jobs of one home: an SQLite database that any number of processes read and write at once.

Each operation opens the database and closes it. So nothing is carried through a fork or from thread to thread, and
none of our processes has the file open while another one replaces it: SQLite removes a log by its name when it closes
a database, so it would remove that of the new one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ....errors import EstimatorError
from ....values.home import jobs_of
from ...status import AttemptRecord
from .hold import NotOurs
from .record import Process, Record, read_copies

FORMAT = 1
"""In the database's `user_version`. It grows with every change of what a job, an attempt or a verdict is made of: to a
version that does not know of it, the rows would be damage."""
BUSY_SECONDS = 30.0  # for the change of another process, which takes milliseconds
TRIES = 3  # after which a database that is replaced is damaged again by something that goes on
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE jobs (
  name TEXT PRIMARY KEY, status TEXT NOT NULL, backend TEXT NOT NULL, hosts TEXT NOT NULL, created REAL NOT NULL,
  ended REAL, reason TEXT NOT NULL, verdict TEXT, output TEXT NOT NULL, model_data TEXT, supervisor TEXT
);
CREATE TABLE attempts (
  job TEXT NOT NULL, number INTEGER NOT NULL, began REAL, ended REAL, verdict TEXT, PRIMARY KEY (job, number)
);
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_JOB = tuple(field.name for field in fields(Record) if field.name != "attempts")
_ATTEMPT = tuple(field.name for field in fields(AttemptRecord))
# What has parts, and what may hold the name of a file, which need not be text as SQLite has it.
_AS_JSON = ("hosts", "reason", "verdict", "output", "model_data", "supervisor")
_ERRNO = {
    "database or disk is full": errno.ENOSPC,
    "database is locked": errno.EBUSY,
    "attempt to write a readonly database": errno.EACCES,
    "unable to open database file": errno.EACCES,
}
Result = TypeVar("Result")


class StillRuns(Exception):
    """A job of that name is not over, though its folder may have been removed."""

    def __init__(self, supervisor: Process) -> None:
        super().__init__(supervisor.pid)
        self.supervisor = supervisor


class _UnusableError(Exception):
    """There is no database, or it is damaged; the words say how."""


class State:
    """The jobs of a home. Every operation raises OSError when the disk or another process is in its way.

    A database that is damaged is set aside, with a warning, and made again from what the jobs' folders tell.
    One that a newer version has made is left alone: EstimatorError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_checked = False

    @classmethod
    @cache
    def of(cls, path: Path) -> State:
        """The same object for the same path, so that a process checks a database once."""
        return cls(path)

    def claim(self, record: Record) -> None:
        """Write a new job, over one of that name that is over. Raises StillRuns."""
        self._use(lambda db: _write(db, [record], "REPLACE", _check_over))

    def put(self, record: Record) -> None:
        """Write all of a job. Raises NotOurs where the name belongs to another supervisor by now."""
        self._use(lambda db: _write(db, [record], "REPLACE", _check_same))

    def add(self, records: Iterable[Record]) -> None:
        """Write jobs, but those that are there."""
        chosen = list(records)
        self._use(lambda db: _write(db, chosen, "INSERT OR IGNORE"))

    def get(self, name: str) -> Record | None:
        found = self._use(lambda db: _read(db, "WHERE name = ?", name))
        return found[0] if found else None

    def all(self) -> list[Record]:
        """Every job, the newest first."""
        return self._use(lambda db: _read(db, "ORDER BY created DESC"))

    def _use(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        tries = 0
        while True:
            try:
                return self._try(operation)
            except _UnusableError as error:
                tries += 1
                if tries == TRIES:
                    raise EstimatorError(f"the database of the jobs, {self._path}, cannot be used: {error}") from None
                self._make()

    def _try(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        with self._locked(fcntl.LOCK_SH), self._opened() as db:
            _check_version(db)  # a newer version may have come while this process ran
            if not self._is_checked:
                _check_pages(db)
                self._is_checked = True
            return operation(db)

    def _make(self) -> None:
        """Put a database where there is none, or where there is one that cannot be used."""
        with self._locked(fcntl.LOCK_EX):
            existed = self._path.exists()
            damage = self._damage()
            if damage is None:
                return  # another process was here first
            aside = self._set_aside() if existed else None
            copies, unreadable = read_copies(jobs_of(self._path))
            if aside is not None:
                words = f"{damage}; it is now {aside}, and its jobs were read again from their folders: {len(copies)}"
                lost = "".join(f"; {each}" for each in unreadable)
                warnings.warn(f"the database of the jobs, {self._path}, was damaged: {words}{lost}", stacklevel=2)
            self._create([copy.record for copy in copies if not copy.is_followed])

    def _create(self, records: list[Record]) -> None:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with self._connected() as db:
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(_SCHEMA)
                _write(db, records, "REPLACE")
        except BaseException:  # a disk that is full; what is half made would be taken for damage
            for path in self._files():
                path.unlink()
            raise

    def _damage(self) -> str | None:
        """What is wrong with the database; None if nothing is."""
        try:
            with self._opened() as db:
                _check_version(db)
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # its log may have hidden what is wrong with the file
                _check_pages(db)
                _read(db, "")
        except _UnusableError as error:
            return str(error)
        return None

    def _set_aside(self) -> Path:
        """Rename the database and its log, so that SQLite can still open what is left of them."""
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}.{time.time_ns() // 1000 % 1000000:06d}"
        aside = self._path.with_name(f"{self._path.name}.damaged-{stamp}")
        for path in self._files():
            path.rename(f"{aside}{path.name.removeprefix(self._path.name)}")
        return aside

    def _files(self) -> list[Path]:
        """Those there are of the database, its log and the log's index; the database last."""
        return [path for suffix in ("-wal", "-shm", "") if (path := Path(f"{self._path}{suffix}")).exists()]

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Hold the home: shared by those who use the database, alone by one who replaces it."""
        fd = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Raises _UnusableError for what cannot be a database, before SQLite sees it and removes its log."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            raise _UnusableError("it is not there") from None
        if size == 0:
            raise _UnusableError("it is empty")
        with self._connected() as db:
            yield db

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
                # Not FULL: a power cut may take the last changes, which the folders know; it breaks nothing.
                db.execute("PRAGMA synchronous = NORMAL")
                yield db
        except sqlite3.DatabaseError as error:
            raise self._meaning(error) from None
        except (ValueError, TypeError, KeyError) as error:
            raise _UnusableError(f"a job in it cannot be understood: {error!r}") from None

    def _meaning(self, error: sqlite3.DatabaseError) -> Exception:
        """Whether the database is to blame, or what is below it."""
        words = str(error)
        if not isinstance(error, sqlite3.OperationalError) or words.startswith("no such "):
            return _UnusableError(words)
        number = _ERRNO.get(words, errno.EIO)
        if number == errno.EIO and os.statvfs(self._path.parent).f_bavail == 0:
            number = errno.ENOSPC  # SQLite has this word for a file that it could not make longer, too
        return OSError(number, f"{os.strerror(number)} ({words})", str(self._path))


def _check_version(db: sqlite3.Connection) -> None:
    """Raises EstimatorError for a database of a newer version, and _UnusableError for one that is not ours."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        (_, _, path), *_ = db.execute("PRAGMA database_list")
        raise EstimatorError(
            f"the database of the jobs, {path}, was made by a newer version of estimator-sdk (its format is {version}, "
            f"this version knows {FORMAT}); install that version, or set ESTIMATOR_HOME to another folder"
        )
    if version != FORMAT:
        raise _UnusableError("it is not a database of jobs")


def _check_pages(db: sqlite3.Connection) -> None:
    """Raises _UnusableError for a database that is damaged."""
    (words,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if words != "ok":
        raise _UnusableError(words.splitlines()[-1])


def _check_over(there: Record, record: Record) -> None:
    if not there.is_final and there.supervisor is not None and there.supervisor.is_alive():
        raise StillRuns(there.supervisor)


def _check_same(there: Record, record: Record) -> None:
    if there.supervisor not in (None, record.supervisor):
        raise NotOurs(f"the name {record.name} belongs to another job by now: this one ends, and leaves nothing")


def _write(
    db: sqlite3.Connection,
    records: list[Record],
    verb: str,
    check: Callable[[Record, Record], None] | None = None,
) -> None:
    """`check` is called with what is there of a job, and with what is to take its place."""
    db.execute("BEGIN IMMEDIATE")
    for record in records:
        if check is not None and (there := _select(db, "WHERE name = ?", record.name)):
            check(there[0], record)
        values = record.fields()
        attempts = values.pop("attempts")
        if _insert(db, verb, "jobs", values):
            db.execute("DELETE FROM attempts WHERE job = ?", (record.name,))
            for attempt in attempts:
                _insert(db, "INSERT", "attempts", {"job": record.name, **attempt})
    db.execute("COMMIT")


def _insert(db: sqlite3.Connection, verb: str, table: str, values: dict[str, Any]) -> bool:
    marks = ", ".join("?" * len(values))
    columns = [_to_column(name, value) for name, value in values.items()]
    return db.execute(f"{verb} INTO {table} ({', '.join(values)}) VALUES ({marks})", columns).rowcount > 0


def _read(db: sqlite3.Connection, which: str, *values: str) -> list[Record]:
    db.execute("BEGIN")  # one moment for both tables
    found = _select(db, which, *values)
    db.execute("COMMIT")
    return found


def _select(db: sqlite3.Connection, which: str, *values: str) -> list[Record]:
    jobs = db.execute(f"SELECT {', '.join(_JOB)} FROM jobs {which}", values).fetchall()
    where = "WHERE job = ?" if values else ""
    rows = db.execute(f"SELECT job, {', '.join(_ATTEMPT)} FROM attempts {where} ORDER BY number", values).fetchall()
    attempts: dict[str, list[dict[str, Any]]] = {}
    for job, *row in rows:
        attempts.setdefault(job, []).append(_from_columns(_ATTEMPT, row))
    return [Record.of({**_from_columns(_JOB, row), "attempts": attempts.get(row[0], [])}) for row in jobs]


def _to_column(name: str, value: object) -> object:
    return json.dumps(value) if name in _AS_JSON and value is not None else value


def _from_columns(names: Sequence[str], row: Iterable[Any]) -> dict[str, Any]:
    found = zip(names, row, strict=True)
    return {name: json.loads(value) if name in _AS_JSON and value is not None else value for name, value in found}
