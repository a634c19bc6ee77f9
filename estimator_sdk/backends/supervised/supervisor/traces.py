"""Why an attempt failed: what the platform and its hosts say, and the traces of a host that has left no verdict."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from estimator_container.contract.names import EXIT_OK, FAILURE_TEXT_LIMIT, Layout
from estimator_container.failures import verdict as verdicts
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import STDERR, FrameParser

from ....values.home import regular_file

TAIL_BYTES = 1 << 18  # of a log that may be of any size


class Failure:
    """What is known of why an attempt failed."""

    def __init__(self, first: str, layout: Callable[[str], Layout]) -> None:
        """`first` is the first host, which hears all; `layout` has the files of each."""
        self.host: str | None = None
        """The first that ended otherwise than well."""
        self.said_by_others: Verdict | None = None
        """Of the first host, which they have lost."""
        self._first = first
        self._layout = layout
        self._seen: Verdict | None = None
        self._code = EXIT_OK
        self._killed: list[str] = []
        """The hosts that were, and by somebody else, or are lost."""

    def see(self, found: Verdict | None) -> None:
        """Take what the platform knows; the first counts."""
        self._seen = self._seen or found

    def host_ended(self, host: str, code: int, is_killed: bool) -> bool:
        """Take the end of a host, which somebody else may have killed. Returns whether it is the first that failed."""
        if is_killed:
            self._killed.append(host)
        if code == EXIT_OK or self.host is not None:
            return False
        self.host, self._code = host, code
        return True

    def wait_for_another_first(self, lost: Sequence[str]) -> None:
        """The others do: what they say of the first host counts, which is one of those that are lost."""
        self.see(self.said_by_others)
        self._killed += [host for host in lost if host not in self._killed]

    def others_are_told_to_end(self) -> None:
        """What they say from now on may be of that end: after a host that was killed it does not count."""
        if self.host in self._killed:
            self.see(self._first_word)

    @property
    def verdict(self) -> Verdict | None:
        """What the platform saw, then the first host's word, for it heard all, then that of the first that failed.

        Where there is no word, there are traces.
        """
        found = self._first_word
        if found is not None and found.may_be_lost_host and found.host in self._killed:  # with all that ran there
            found = verdict(found.host, -signal.SIGKILL, self._layout(found.host))
        return found.with_lost_hosts(self._killed) if found is not None and found.kind is Kind.HOST_LOST else found

    @property
    def _first_word(self) -> Verdict | None:
        if self._seen is not None or self.host is None:
            return self._seen
        for host in (self._first, self.host):
            if (word := _word(Path(self._layout(host).verdict))) is not None:
                return word
        return self.said_by_others or verdict(self.host, self._code, self._layout(self.host))


def verdict(host: str, code: int, layout: Layout) -> Verdict:
    """What can be said of a failed host: `code` is its exit code, or minus a signal's number.

    The detail is what the host put into `output/failure`, as far as SageMaker shows it, and its last words on standard
    error: a toolkit that does not capture them leaves them out of the file.
    """
    failure = _read(Path(layout.failure)).decode("utf-8", "replace").strip()
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


def _word(path: Path) -> Verdict | None:
    """What a host has left there; None for nothing, what cannot be read, and what only a script can have put there."""
    with suppress(ValueError):
        return Verdict.from_json(_read(path).decode("utf-8"))
    return None


def _read(path: Path, most: int | None = None) -> bytes:
    """A file, or so many bytes from its end; nothing of what cannot be read: a script may make anything there."""
    try:
        with open(path, "rb", opener=regular_file) as file:
            if most is not None:
                file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read()
    except OSError:
        return b""


def _without(failure: str, words: str) -> str:
    """Toolkits log the failure that they write: once is enough."""
    return words.replace(failure, "…") if failure else words


def _stderr_tail(frames: Path) -> str:
    parser = FrameParser()
    found = [*parser.feed(_read(frames, TAIL_BYTES)), *parser.finish()]
    return b"".join(frame.data for frame in found if frame.stream == STDERR).decode("utf-8", "replace")
