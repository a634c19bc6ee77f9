"""This machine's copy of what a job writes on the first machine of its pool, brought up to date piece by piece."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BackendError, JobNotFound
from ...values.debugging import debug
from ...values.home import make_folder, private_file
from .files import SshFolder, Whereabouts
from .on_host.copying.mirrored import has_moved
from .on_host.copying.trees import write_all
from .on_host.room.folder_lock import lock
from .pool import PoolHost
from .session.connection import Session, Unreachable
from .session.upload import PIECE

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict

    from ..supervised.job_folder.record import Record

TRY_AGAIN_SECONDS = 1.0
"""After a connection was cut, between two tries to make another."""
OTHER_SECONDS = 10.0
"""That another client may copy the job before who waits for it is told."""
LIST_SECONDS = 3.0
"""The same before a list of jobs goes on without its news."""
_AWAY: dict[PoolHost, tuple[float, str]] = {}
"""Machine -> until when a list does not ask it again, for as long as it was asked in vain, and what was said."""


class Mirror:
    """The copy of one job, for any thread of any process."""

    def __init__(self, folder: SshFolder, known: Whereabouts, session: Session | None = None) -> None:
        """`session` is one to the job's machine that is open already."""
        self._folder = folder
        self._known = known
        self._lock = threading.RLock()
        self._session = session
        self.heard_at = time.monotonic()
        """When the machine has answered last, or was not asked yet."""
        self._failed_at: float | None = None
        self.failure = ""
        """What was said of the connection then."""

    def ask(self, operation: str, **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
        """Ask the job's machine for something. Raises BackendError, and JobNotFound where the job is gone there."""
        return self._ask(operation, **facts)[0]

    def add_output(self, name: str, text: str) -> None:
        """Put a file among the outputs of the first host there. Raises as `ask`."""
        data, file = text.encode(), f"{self._folder.name}-{os.urandom(8).hex()}"
        for begin in range(0, len(data), PIECE) or (0,):
            end = begin + PIECE
            self._ask("put", data[begin:end], name=file, begins=not begin, ends=end >= len(data), stays=True)
        self.ask("add_output", file=file, name=name)

    @contextlib.contextmanager
    def alone(self, waits: bool) -> Iterator[None]:
        """No other thread or process copies in the block. Raises as `ask`, and OSError.

        One that copies for long is waited for, with a warning; without `waits` it is an error.
        """
        until, why = _AWAY.get(self._known.first, (0.0, ""))
        if not waits and time.monotonic() < until:
            raise Unreachable(why)
        with self._turn():
            with self._connected():
                pass  # before other processes are kept from copying
            fd = os.open(self._folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._take(fd, waits)
                yield
            finally:
                os.close(fd)

    def _take(self, fd: int, waits: bool) -> None:
        try:
            lock(fd, OTHER_SECONDS if waits else LIST_SECONDS)
        except TimeoutError:
            what = f"another client on this machine copies {self._folder.name} from {self._known.first}"
            said = f"{what}; if it stands still, as after Ctrl-Z, continue it or end it"
            if not waits:
                raise BackendError(said) from None
            warnings.warn(f"{said}, for this one waits for it", stacklevel=2)
            fcntl.flock(fd, fcntl.LOCK_EX)

    def update(self, with_files: bool) -> dict[str, Any]:
        """Copy what is new, and with `with_files` what hosts measure and, at the end, the outputs; nobody else may.

        Returns the fields of the job's record; all that was written before it is here then. Raises as `ask`, and
        OSError.
        """
        record: dict[str, Any] | None = None
        while True:
            known = self._read_states()
            answer, contents = self._ask("sync", known=known, with_outputs=with_files, with_measured=with_files)
            record = record or dict(answer["record"])
            self._apply(known, answer, contents, keep_known=bool(answer["more"]) or not with_files)
            if not answer["more"]:
                return record

    def wait(self, seconds: float) -> None:
        """Return after a change there, or after so many seconds; a connection that is cut is made again."""
        try:
            self._ask("wait", seconds=seconds)
        except Unreachable:
            threading.Event().wait(min(seconds, TRY_AGAIN_SECONDS))

    def close(self) -> None:
        """End the session."""
        with self._lock:
            self._drop()

    def _ask(
        self,
        operation: str,
        data: bytes = b"",
        **facts: Any,  # noqa: ANN401 - JSON values
    ) -> tuple[dict[str, Any], bytes]:
        with self._turn(), self._connected() as session:
            answer, contents = session.ask_for_data(operation, data, folder=self._known.remote, **facts)
            self._failed_at, self.heard_at = None, time.monotonic()
            _AWAY.pop(self._known.first, None)
        if "missing" in answer:
            raise JobNotFound(f"the job {self._folder.name} is not on {self._known.first} any more")
        return answer, contents

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One thread at a time; while nothing is heard of the machine, no other waits for the one that tries."""
        if not self._lock.acquire(blocking=self._failed_at is None):
            raise Unreachable(self.failure)
        try:
            yield
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Session]:
        """A session, which is dropped where it is of no more use after the block."""
        if self._failed_at is not None and time.monotonic() - self._failed_at < TRY_AGAIN_SECONDS:
            raise Unreachable(self.failure)
        began = time.monotonic()
        try:
            if self._session is None:
                self._session = Session(self._known.first)
            yield self._session
        except Unreachable as error:
            debug("%s: %s", self._folder.name, error)
            self._drop()
            self._failed_at, self.failure = time.monotonic(), str(error)
            _AWAY[self._known.first] = (2 * self._failed_at - began, self.failure)
            raise
        except BackendError:
            raise
        except BaseException:  # a Ctrl-C: the answer to this would be taken for that to the next request
            self._drop()
            raise

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _read_states(self) -> dict[str, list[int]]:
        """What the files here were there, as far as they are here."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            known = json.loads(self._folder.mirrored.read_text(encoding="utf-8"))
            return {path: state for path, state in known.items() if self._has(path, state[1])}
        return {}

    def _has(self, path: str, size: int) -> bool:
        try:
            return (self._folder.path / path).stat().st_size >= size
        except OSError:
            return False

    def _apply(
        self, known: Mapping[str, list[int]], answer: Mapping[str, Any], contents: bytes, keep_known: bool
    ) -> None:
        files: dict[str, list[int]] = answer["files"]
        self._move(known, files)
        taken = 0
        for path, offset, size in answer["pieces"]:
            self._write(path, offset, contents[taken : taken + size])
            taken += size
        merged = {**(known if keep_known else {}), **files}
        if merged != known:
            draft = f"{self._folder.mirrored}.new"
            with open(draft, "w", encoding="utf-8", opener=private_file) as file:
                json.dump(merged, file)
            Path(draft).replace(self._folder.mirrored)

    def _move(self, known: Mapping[str, list[int]], files: Mapping[str, list[int]]) -> None:
        """Files that have another name there get it here, and who reads one goes on reading."""
        names = {state[0]: path for path, state in known.items()}
        for path, state in files.items():
            before = names.get(state[0])
            if before is not None and has_moved(before, path) and path not in known:
                place = self._place(path)
                make_folder(place.parent)
                with contextlib.suppress(FileNotFoundError):
                    (self._folder.path / before).replace(place)

    def _write(self, path: str, offset: int, data: bytes) -> None:
        place = self._place(path)
        make_folder(place.parent)
        draft = place.with_name(f".{place.name}.new")
        if offset < 0:
            draft.unlink(missing_ok=True)
        target = draft if offset < 0 else place
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data, max(0, offset))
        finally:
            os.close(fd)
        if target is draft:
            draft.replace(place)  # who reads the file before it goes on reading

    def _place(self, path: str) -> Path:
        """Raises BackendError for what is not below the job's folder."""
        parts = Path(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            raise BackendError(f"{self._known.first} names a file {path!r}, which is outside of the job's folder")
        return self._folder.path / path


def as_here(told: Record, known: Whereabouts, before: Record) -> Record:
    """A record of the first machine, with the places of this one; where to find what is left there names it."""
    there = f"file://{known.remote}/output"
    named = re.compile(rf"(?<![\w:/]){re.escape(known.remote)}(?=/hosts(?!/)|/output(?!/)|/supervisor\.log|(?![\w/-]))")

    def here(uri: str | None) -> str | None:
        return None if uri is None else uri.replace(there, before.output, 1) if uri.startswith(there) else uri

    def in_text(text: str) -> str:
        return named.sub(lambda found: f"{known.first.name}:{found[0]}", text)

    def in_verdict(found: Verdict | None) -> Verdict | None:
        return found and replace(found, message=in_text(found.message), detail=in_text(found.detail))

    return replace(
        told,
        created=before.created,
        output=here(told.output) or "",
        model_data=here(told.model_data),
        supervisor=None,
        reason=in_text(told.reason),
        verdict=in_verdict(told.verdict),
        attempts=tuple(replace(each, verdict=in_verdict(each.verdict)) for each in told.attempts),
    )
