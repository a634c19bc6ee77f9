"""Counting the steps of what a rank trains, and sending a few of its weights to the toolkit now and then."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import socket
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..runtime.wire import pack
from . import horovod_world
from .weight_report import PRECISIONS, Sample, Standing, WeightReport

if TYPE_CHECKING:
    from ..training.step_clock import StepClock

FIRST_LOOKS = (2, 5, 20)
"""Steps after which weights are sent. Not after the first: a model that is built in it is broadcast after it."""
EVERY = 500
"""Steps between two reports from then on."""
VARIABLES, NUMBERS = 3, 8
"""How many variables of a training are looked at, and how many numbers of each."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Weight(NamedTuple):
    """A variable that is trained."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], Sequence[float]]
    """Gives the numbers at `places` of its elements. Raises ReferenceError when the variable is gone."""

    @property
    def facts(self) -> tuple[str, str, tuple[int, ...]]:
        """What is the same on all ranks."""
        return self.name, self.dtype, self.shape


def next_look(step: int) -> int:
    """
    >>> next_look(0), next_look(2), next_look(20), next_look(500)
    (2, 5, 500, 1000)
    """
    return next((first for first in FIRST_LOOKS if first > step), (step // EVERY + 1) * EVERY)


def places(size: int) -> list[int]:
    """Which of the elements of a variable, in their order, are looked at.

    >>> places(3), places(71)
    ([0, 1, 2], [0, 10, 20, 30, 40, 50, 60, 70])
    """
    return _spread(range(size), NUMBERS)


class Training:
    """What one optimizer does, or one place of the script that takes gradients and applies them by itself."""

    def __init__(self, guard: Guard, weights: Callable[[], list[Weight]]) -> None:
        """`weights` gives all variables that are trained, without those that are this rank's own."""
        self.ranks: tuple[int, ...] | None = None
        """Those among which gradients are averaged, empty for all; None where no averaging has been seen."""
        self.start = self.step = 0
        self.due = FIRST_LOOKS[0]
        self._guard = guard
        self._weights = weights
        self._name = ""
        self._looked_at: list[Weight] = []

    def count(self) -> None:
        """One more step has been done."""
        clock = self._guard.clock
        if clock is not None:
            clock.count(self)
        self.step += 1
        if self.step == self.due:
            self.due = next_look(self.step)
            self._guard.report(self)

    def restart(self) -> None:
        """Count from 0 again: all ranks are at this point, however many steps each has done."""
        if self.due:
            self.start, self.step, self.due = self.start + 1, 0, FIRST_LOOKS[0]

    def end(self) -> None:
        """Look at it no more."""
        self.due = 0

    def name(self, number_of: Callable[[str], int]) -> str:
        """What it is called on all ranks, which its first report decides."""
        if not self._name:
            weights = [weight for weight in self._weights() if weight.dtype in PRECISIONS]
            self._looked_at = _spread(weights, VARIABLES)
            text = repr(([weight.facts for weight in weights], self.ranks))
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            self._name = f"{digest}.{number_of(digest)}"
        return self._name

    def samples(self) -> tuple[Sample, ...]:
        """The numbers that are sent of each sampled variable, as they are now."""
        return tuple(Sample(each.name, each.dtype, tuple(each.read())) for each in self._looked_at)


class Guard:
    """All that one rank trains."""

    def __init__(
        self, path: str, rank: int, size: int, only_warns: bool, compares: bool = True, clock: StepClock | None = None
    ) -> None:
        """`path` is the socket of the host's toolkit; a guard that `only_warns` never ends a job.

        One that does not compare sends no weights, and only counts steps.
        """
        self.size = size
        self.compares = compares
        self.clock = clock
        """That of this rank, which hears of each step."""
        self.averages_unseen = False
        """Whether there is an optimizer that averages, of which it is not seen what it averages."""
        self._path = path
        self._rank = rank
        self._only_warns = only_warns
        self._pid = os.getpid()
        self._trainings: weakref.WeakSet[Training] = weakref.WeakSet()
        self._numbers: Counter[str] = Counter()
        self._socket: socket.socket | None = None
        self._works = True

    def begin(self, weights: Callable[[], list[Weight]]) -> Training:
        """Start counting the steps of a new training; `weights` lists its weights when they are first sampled."""
        training = Training(self, weights)
        self._trainings.add(training)
        return training

    def restart(self) -> None:
        """All ranks have met; some may have done more steps than others."""
        for training in self._trainings:
            training.restart()

    def restarting(self, stock: Callable[..., T]) -> Callable[..., T]:
        """A function of a framework, after which all trainings begin again."""

        @functools.wraps(stock)
        def restarting(*args: Any, **kwargs: Any) -> T:
            result = stock(*args, **kwargs)
            self.restart()
            return result

        return restarting

    def report(self, training: Training) -> None:
        """Send the weights of a training."""
        if self.compares:
            self.safely(lambda: self._look(training))

    def safely(self, do: Callable[[], T]) -> T | None:
        """Whatever happens here must not be the script's concern: a guard that fails is off from then on."""
        if not self._works or os.getpid() != self._pid:
            return None  # a child of the rank is none
        try:
            return do()
        except Exception:
            _log.debug("the drift guard of rank %d gives up", self._rank, exc_info=True)
            self._works = False
            return None

    def _look(self, training: Training) -> None:
        ranks = training.ranks or ()
        if ranks and self._rank not in ranks:
            return
        if training.step == FIRST_LOOKS[0] and horovod_world.is_for_some(self.size):
            training.end()
            return
        name = training.name(self._number)
        try:
            samples = training.samples()
        except ReferenceError:
            training.end()
            return
        if samples:
            place = (self._rank, name, training.start, training.step)
            self._send(WeightReport(*place, self._standing(training), self._only_warns, ranks, samples))

    def _standing(self, training: Training) -> Standing:
        if training.ranks is not None:
            return Standing.AVERAGED
        averages = self.averages_unseen or any(other.ranks is not None for other in self._trainings)
        asked = not averages and horovod_world.is_for_all(self.size)
        return Standing.ASKED if asked else Standing.FREE

    def _number(self, digest: str) -> int:
        self._numbers[digest] += 1
        return self._numbers[digest]

    def _send(self, report: WeightReport) -> None:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(self._path)
            self._socket.setblocking(False)  # a toolkit that does not listen must not hold up the script
        message = pack(["weights", *report.to_fields()])
        if self._socket.send(message) < len(message):
            raise BlockingIOError("the toolkit does not take what it is sent")


def _spread(items: Sequence[T], count: int) -> list[T]:
    """The first, the last and some between them."""
    last = len(items) - 1
    return list(items) if last < count else [items[number * last // (count - 1)] for number in range(count)]
