"""All jobs in memory: read once, and after that only where something has changed."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import backends
from ...backends.port import Summary
from ...backends.status import FINAL
from ...backends.supervised.job import attach
from ...backends.supervised.watch import Watch
from ...errors import EstimatorError
from ...values.home import JobFolder, jobs_folder
from ...values.job_name import is_name

if TYPE_CHECKING:
    from ...backends.port import StartedJob

SERVICES = "services"
"""What `take` is told to be the source of jobs that run at a service."""
_LOOK_SECONDS = 3.0  # between two looks at jobs that run, for a change that no file tells, such as a killed supervisor
_QUIET_SECONDS = 0.1  # in which changes that come together become one


@dataclass(frozen=True)
class Change:
    """What has changed since the last one."""

    changed: tuple[Summary, ...]
    removed: tuple[str, ...]


class JobIndex:
    """The summaries of all jobs. Any thread may ask it; a thread of its own keeps it up to date."""

    def __init__(self) -> None:
        self._jobs: dict[str, Summary] = {}
        self._lock = threading.Lock()
        self._folder = jobs_folder()
        self._modified = 0
        self._names = set[str]()
        """Those of the folders in the home, as they were last."""
        self._elsewhere: dict[str, set[str]] = {}
        """Who calls `take` -> the jobs that nobody else tells of."""
        self._awaited = set[str]()
        """Folders without a record: each is a job that is about to be started, or none at all."""
        self._records: dict[str, tuple[int, int]] = {}
        """What tells the record of a job that runs from the one before: it says more than a summary does."""
        self._watch = Watch(longest=_LOOK_SECONDS)
        self._watched = set[Path]()
        self._over = threading.Event()

    def load(self) -> None:
        """Read all jobs but those with folders elsewhere, of which `take` is told.

        Raises EstimatorError for a home that cannot be read.
        """
        self._add_watch(self._folder)
        self._modified = self._modification()
        self._names = self._scan() if self._modified else set()
        here = backends.jobs(None, None, without=backends.with_own_folders())
        found = {each.name: each for each in _summaries(here)}
        with self._lock:
            self._jobs = found
        self.take(SERVICES, (each.summary() for each in backends.submitted()))
        for name in self._running():
            self._add_watch(self._folder / name)

    def all(self) -> list[Summary]:
        """Every job, in no order."""
        with self._lock:
            return list(self._jobs.values())

    def get(self, name: str) -> Summary | None:
        """One job; None for one that is not in the index."""
        with self._lock:
            return self._jobs.get(name)

    def counts(self) -> dict[str, int]:
        """How many jobs have each status."""
        return dict(Counter(each.status for each in self.all()))

    def follow(self, tell: Callable[[Change], None]) -> None:
        """Keep up to date, and tell what changes, until `close` is called."""
        while not self._over.is_set():
            self._watch.wait()
            if self._over.wait(_QUIET_SECONDS):
                break
            with suppress(EstimatorError, OSError):  # a home that is away for a moment; the next look tells
                change = self.refresh()
                if change.changed or change.removed:
                    tell(change)
        self._watch.close()

    def close(self) -> None:
        """End `follow` soon."""
        self._over.set()

    def refresh(self) -> Change:
        """Look at what may have changed: the names of the jobs, and those that have not ended."""
        before = {each.name: each for each in self.all()}
        removed = set[str]()
        looked = {*self._running(), *self._awaited}
        modified = self._modification()
        if modified != self._modified:
            self._modified = modified
            names = self._scan() if modified else set()
            removed = (self._names - names) & before.keys()
            looked = looked - (self._names - names) | names - before.keys()
            self._names = names
        found: dict[str, Summary] = {}
        for name in looked - removed:
            with suppress(EstimatorError, OSError):
                found[name] = attach(name).summary()  # which asks no other machine
            if name in found and found[name].status not in FINAL:
                self._add_watch(self._folder / name)
        self._awaited = looked - found.keys() - before.keys() - removed
        for name in self._awaited:
            self._add_watch(self._folder / name)
        records = {name: record_of(JobFolder(self._folder / name)) for name in found}
        changed = tuple(
            each for name, each in found.items() if before.get(name) != each or self._records.get(name) != records[name]
        )
        self._records = records
        with self._lock:
            self._jobs.update(found)
            for name in removed:
                self._jobs.pop(name, None)
                self._watched.discard(self._folder / name)
        return Change(changed, tuple(sorted(removed)))

    def take(self, source: str, heard: Iterable[Summary], also: Collection[str] = ()) -> Change:
        """What was heard of all jobs of one source; those of this machine have their names first.

        `also` are jobs of which more has changed than their summaries say.
        """
        with self._lock:
            others = {name for each, names in self._elsewhere.items() if each != source for name in names}
            found = {each.name: each for each in heard if each.name not in self._names and each.name not in others}
            gone = [name for name in self._elsewhere.get(source, ()) if name not in found and name not in self._names]
            changed = tuple(each for name, each in found.items() if self._jobs.get(name) != each or name in also)
            self._jobs.update(found)
            for name in gone:
                self._jobs.pop(name, None)
            self._elsewhere[source] = set(found)
        return Change(changed, tuple(sorted(gone)))

    def _running(self) -> list[str]:
        with self._lock:
            elsewhere = set().union(*self._elsewhere.values())
        return [each.name for each in self.all() if each.status not in FINAL and each.name not in elsewhere]

    def _scan(self) -> set[str]:
        return {path.name for path in self._folder.iterdir() if is_name(path.name)}

    def _modification(self) -> int:
        try:
            self._add_watch(self._folder)
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0

    def _add_watch(self, folder: Path) -> None:
        if folder not in self._watched and folder.exists():
            self._watched.add(folder)
            self._watch.add(folder)


def record_of(folder: JobFolder) -> tuple[int, int]:
    """What tells the record of a job from the one before; zeros where there is none."""
    try:
        status = folder.record.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def _summaries(jobs: Iterable[StartedJob]) -> Iterable[Summary]:
    for each in jobs:
        try:
            yield each.summary()
        except EstimatorError as error:
            warnings.warn(str(error), stacklevel=3)
