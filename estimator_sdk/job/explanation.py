"""Why a job ended as it did, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.port import State
    from ..backends.status import AttemptRecord


def why(record: State) -> str:
    """What became of a job, of its attempts, and of its hosts."""
    if record.verdict is not None:
        text = record.verdict.text()
    else:
        text = f"{record.name} is {record.status}{f': {record.reason}' if record.reason else ''}\n"
    return "\n".join((text, *_lines_about_attempts(record.attempts)))


def _lines_about_attempts(attempts: Sequence[AttemptRecord]) -> Iterator[str]:
    from ..backends.suspects import suspects
    from ..telemetry.sentences import sentence_about

    for attempt in attempts[:-1]:
        if attempt.verdict is not None and attempt.ended is not None:
            seconds = attempt.ended - attempt.began
            yield f"attempt {attempt.number} failed after {seconds:.1f} s: {attempt.verdict.message}\n"
    for suspect in suspects(attempts):
        yield f"{sentence_about(suspect.host, suspect.event)}\n"
