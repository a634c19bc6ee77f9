"""Why a host failed that left no verdict, as one with another toolkit does: read from its traces."""

from __future__ import annotations

from pathlib import Path

from estimator_container.contract.names import FAILURE_TEXT_LIMIT, Layout
from estimator_container.failures import verdict as verdicts
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import STDERR, FrameParser

TAIL_BYTES = 1 << 18  # of a log that may be of any size


def verdict(host: str, code: int, layout: Layout) -> Verdict:
    """What can be said of a failed host: `code` is its exit code, or minus a signal's number.

    The detail is what the host put into `output/failure`, as far as SageMaker shows it, and its last words on standard
    error: a toolkit that does not capture them leaves them out of the file.
    """
    failure = _text(Path(layout.failure)).strip()
    if code < 0:
        name = verdicts.signal_name(-code)
        return Verdict(Kind.HOST_LOST, f"{host} was killed by {name}", host, signal=name, detail=failure)
    detail = [failure[:FAILURE_TEXT_LIMIT], _without(failure, verdicts.last_words(_stderr_tail(Path(layout.frames))))]
    return Verdict(
        Kind.EXIT_CODE,
        f"{host} exited with code {code}",
        host,
        exit_code=code,
        detail="\n\n".join(part for part in detail if part.strip()),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _without(failure: str, words: str) -> str:
    """Toolkits log the failure that they write: once is enough."""
    return words.replace(failure, "…") if failure else words


def _stderr_tail(frames: Path) -> str:
    if not frames.exists():
        return ""
    with frames.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        parser = FrameParser()
        found = [*parser.feed(file.read()), *parser.finish()]
    return b"".join(frame.data for frame in found if frame.stream == STDERR).decode("utf-8", "replace")
