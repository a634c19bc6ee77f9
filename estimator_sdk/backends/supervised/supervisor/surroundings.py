"""What is around a supervisor: where it runs as a program like others, or what a scheduler gives and takes back."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from estimator_container.failures.verdict import Verdict


class Interruption(NamedTuple):
    """Why a scheduler ends what runs."""

    reason: str
    comes_again: bool = False
    """Whether it starts the supervisor again, elsewhere, in the same folder."""
    verdict: Verdict | None = None
    """Where the job has failed by that; without one it was stopped."""


class Surroundings(Protocol):
    """What a supervisor asks of its surroundings."""

    @property
    def interrupted_by(self) -> Sequence[signal.Signals]:
        """The signals that are a scheduler's, and that every process of the hosts has had; others are the user's."""

    def interrupt(self) -> None:
        """Such a signal has come."""

    def is_taken(self) -> bool:
        """Whether the hosts are being taken, though no such signal has come."""

    def interruption(self) -> Interruption:
        """Why they are, or why it came."""

    def loss(self, beside: str) -> Verdict | None:
        """Why the supervisor before this one, which ran beside a host, left no word; None where nobody can say."""


class Undisturbed:
    """A machine without a scheduler."""

    interrupted_by: Sequence[signal.Signals] = ()

    def interrupt(self) -> None:
        """Nobody does."""

    def is_taken(self) -> bool:
        return False

    def interruption(self) -> Interruption:
        raise NotImplementedError

    def loss(self, beside: str) -> Verdict | None:
        return None
