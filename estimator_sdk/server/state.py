"""What the operations share: the index of jobs, the stories of those that are open, and who listens for changes."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from anyio import CapacityLimiter

from .. import backends
from ..errors import JobNotFound
from ..job.ledger import Ledger
from ..values.job_name import checked
from .changes import Hub
from .jobs.curve_bands import CurveReader
from .jobs.index import JobIndex
from .jobs.story import Story
from .jobs.windows import WindowRuns

if TYPE_CHECKING:
    from ..backends.port import StartedJob
    from ..job.diagnosis.diagnosis import Diagnosis

_KEPT = 32  # jobs that are held open, the last that were asked for
_KEPT_CURVES = 8  # of these jobs the curves are kept too
_THREADS = 8
_PAUSE = 20
"""Times as long as it took to make it, what is made of all logs of a job that runs is given again."""
_KEPT_RECKONED = 64
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Reckoned(Generic[V]):
    """What is made of all logs of a job, as it was made last."""

    of: tuple[float | None, bool, int]
    """When the job was created, whether it had ended, and the bytes of its logs."""
    value: V
    until: float
    """When that of a job that runs is made anew, on the monotonic clock."""

    def answers(self, of: tuple[float | None, bool, int]) -> bool:
        """Whether it will do for the job now."""
        return self.of[:2] == of[:2] and time.monotonic() < self.until and (self.of == of or not of[1])


def reckoned(kept: OrderedDict[str, Reckoned[V]], job: StartedJob, size: int, make: Callable[[StartedJob], V]) -> V:
    """What was made last of a job whose logs have so many bytes, or what `make` makes now where that will not do."""
    state, known = job.record(), kept.get(job.name)
    of = (state.created, state.is_final, size)
    if known is None or not known.answers(of):
        began = time.monotonic()
        value = make(job)
        now = time.monotonic()
        known = Reckoned(of, value, math.inf if state.is_final else now + _PAUSE * (now - began))
        put(kept, job.name, known, _KEPT_RECKONED)
    return known.value


class Console:
    """The state of a running console."""

    def __init__(self) -> None:
        self.index = JobIndex()
        self.hub = Hub()
        self.threads = CapacityLimiter(_THREADS)
        self.slow_threads = CapacityLimiter(1)
        """For what computes for seconds, one at a time."""
        self._threads_apart = CapacityLimiter(_THREADS)
        """For jobs of clusters, which may not answer for a while."""
        self._apart = frozenset(backends.with_own_folders())
        self.windows = WindowRuns()
        self.downloads = 0
        """How many are under way."""
        self.ledgers: OrderedDict[str, Reckoned[Ledger]] = OrderedDict()
        """By job, those that were made last."""
        self.diagnoses: OrderedDict[str, Reckoned[Diagnosis]] = OrderedDict()
        """The same of what the doctor says."""
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, StartedJob] = OrderedDict()
        self._curves: OrderedDict[tuple[str, float | None], CurveReader] = OrderedDict()
        self._stories: OrderedDict[tuple[str, float | None, int], Story] = OrderedDict()

    def job(self, name: str) -> StartedJob:
        """The job of that name. Raises InvalidArgument for what is no name, and JobNotFound."""
        name = checked(name, "job")
        with self._lock:
            known = self._jobs.get(name)
        if known is not None:
            try:
                known.record()
                return known
            except JobNotFound:  # it was removed, and another one may have its name
                self._forget(name)
        found = backends.attach(name)
        with self._lock:
            put(self._jobs, name, found)
        return found

    def threads_for(self, name: str, is_slow: bool = False) -> CapacityLimiter:
        """Those in which a request about a job is answered, so that one whose cluster is away holds up no other."""
        known = self.index.get(name)
        if known is not None and known.backend in self._apart:
            return self._threads_apart
        return self.slow_threads if is_slow else self.threads

    def story(self, name: str, created: float | None, attempt: int) -> Story:
        """The story of an attempt of a job, which is told apart from an earlier job of its name."""
        with self._lock:
            key = (name, created, attempt)
            found = self._stories.get(key) or Story()
            put(self._stories, key, found)
            return found

    def curves(self, job: StartedJob) -> CurveReader:
        """The curves of a job, which is told apart from an earlier job of its name."""
        key = (job.name, job.record().created)
        with self._lock:
            found = self._curves.get(key)
        if found is None:
            made = CurveReader(job)
            with self._lock:
                found = self._curves.setdefault(key, made)
        with self._lock:
            put(self._curves, key, found, _KEPT_CURVES)
        return found

    def _forget(self, name: str) -> None:
        with self._lock:
            self._jobs.pop(name, None)


def put(kept: OrderedDict[K, V], key: K, value: V, most: int = _KEPT) -> None:
    """Keep the last ones that were asked for."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
