"""What a cluster's accounting, where it has one, says of a job: how it ended, and who ended it."""

from __future__ import annotations

import pwd
import time
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import BackendError
from . import queue

_CANCELLED = "CANCELLED"
_WORD_SECONDS = 2.0
"""That a word more about an end may take which is known without it."""
_ASK_AGAIN_SECONDS = 0.5
"""The controller tells the accounting of an end a moment later."""
_NO_ACCOUNTING = ("accounting storage is disabled", "is not on PATH")
"""What `sacct` says on a cluster without it (22.05), and what is said where there is no `sacct`."""


class _Silence(NamedTuple):
    """That it did not answer, when, and why; so that a list of many jobs does not ask for each of them."""

    at: float
    why: str


_last = _Silence(-queue.ASK_AGAIN_SECONDS, "")


def find(number: int) -> queue.Queued | None:
    """What it says of a job that the controller has forgotten; None without accounting, or a word there.

    Raises BackendError where there is accounting that does not answer.
    """
    global _last
    if time.monotonic() - _last.at < queue.ASK_AGAIN_SECONDS:
        raise BackendError(_last.why)
    try:
        lines = _lines(number, "State,ExitCode", queue.ANSWER_SECONDS)
    except BackendError as error:
        if any(words in str(error) for words in _NO_ACCOUNTING):
            return None
        _last = _Silence(time.monotonic(), str(error))
        raise
    state, _, code = next(iter(lines), "").partition("|")
    return queue.Queued(state.split()[0], f"exit code {code}") if state.strip() else None


def by_whom(number: int) -> str:
    """Who cancelled a job, for the end of a sentence, such as " by ada"; empty where nobody can say."""
    until = time.monotonic() + _WORD_SECONDS
    while (left := until - time.monotonic()) > 0:
        state = _ask(number, "State%40", left)
        if not state or state.startswith(_CANCELLED):
            return canceller(state)
        time.sleep(_ASK_AGAIN_SECONDS)
    return ""


def ended_before(number: int) -> str:
    """In which state the start of a job before its last one ended; empty where nobody can say."""
    starts = _ask_all(number, "State", _WORD_SECONDS, "--duplicates")
    return starts[-2] if len(starts) > 1 else ""


def canceller(state: str) -> str:
    """Who it was, in the state of a job as `sacct` shows it.

    >>> canceller("CANCELLED by 0")
    ' by root'
    >>> canceller("CANCELLED")
    ''
    """
    _, _, uid = state.strip().partition(f"{_CANCELLED} by ")
    if not uid.isdecimal():
        return ""
    try:
        return f" by {pwd.getpwuid(int(uid)).pw_name}"
    except KeyError:
        return f" by the user with the number {uid}"


def _ask(number: int, columns: str, seconds: float) -> str:
    """The line of a job; empty without one, or without an answer."""
    return next(iter(_ask_all(number, columns, seconds)), "")


def _ask_all(number: int, columns: str, seconds: float, *options: str) -> Sequence[str]:
    """The lines of a job; none without an answer."""
    try:
        return _lines(number, columns, seconds, *options)
    except BackendError:
        return ()


def _lines(number: int, columns: str, seconds: float, *options: str) -> Sequence[str]:
    """The lines of a job: one, or with `--duplicates` one for each of its starts. Raises BackendError."""
    command = ("sacct", "--noheader", "--parsable2", "--allocations", *options)
    return queue.ask(*command, f"--jobs={number}", f"--format={columns}", seconds=seconds).splitlines()
