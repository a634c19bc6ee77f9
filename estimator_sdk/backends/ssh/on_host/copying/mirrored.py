"""What of a job's folder is copied to the machine of its client, piece by piece, as it grows."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ....supervised.watch import Watch
from ...files import WAITING
from . import measured

ROUND_BYTES = 4 << 20
"""The most that one answer brings."""
_LOGS = ("supervisor.log", "attempts/*/*.log", "hosts/*/output/logs/frames", "attempts/*/hosts/*/output/logs/frames")
"""Those that only grow."""
_MEASURED = tuple(f"{hosts}/{each}/*" for hosts in ("hosts/*", "attempts/*/hosts/*") for each in measured.FOLDERS)
_WORDS = (WAITING, "hosts/*/output/failure", "hosts/*/output/verdict.json")
_OUTPUTS = "output"
_WATCHED = (".log", "frames")
"""The ends of the names of those whose growth ends a wait."""


class FileState(NamedTuple):
    """What tells a file from another one of its name, and how far it is written."""

    inode: int
    size: int
    changed: int
    """In nanoseconds since 1970; of a tail the CRC-32 of so many bytes."""


class MirroredFiles:
    """The files of one job, and whether they have changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watch = Watch()
        self._watch.add(folder)
        self._watched: set[tuple[str, int]] = set()

    def wait(self, seconds: float) -> None:
        """Return after a change since the last call, or after so many seconds."""
        self._watch.wait(seconds)

    def news(
        self, known: Mapping[str, Sequence[int]], with_outputs: bool, with_measured: bool
    ) -> tuple[dict[str, Any], bytes]:
        """What has changed since the files were as `known` says: a description, and the bytes that it speaks of.

        `files` are the states of all that there are now; `pieces` are a path, an offset and a number of bytes each, in
        the order of the bytes; an offset of -1 is that of a new file. `more` says whether there is more.
        """
        files: dict[str, FileState] = {}
        pieces: list[tuple[str, int, int]] = []
        contents: list[bytes] = []
        room = ROUND_BYTES
        of_inode = {state[0]: (path, state) for path, state in known.items()}
        tails = self._tails() if with_measured else {}
        for path, only_grows in self._all(with_outputs, with_measured):
            state = self._state(path, only_grows)
            if state is None:
                continue
            before = known.get(path)
            if before is None and state.inode in of_inode and has_moved(of_inode[state.inode][0], path):
                before = of_inode[state.inode][1]
            if path in tails:
                tail = tails[path]
                have = measured.known_part(tail, before[1], before[2]) if before and before[0] == state.inode else None
                data = tail[have or 0 :][:room]
                state = FileState(state.inode, len(tail), zlib.crc32(tail[: (have or 0) + len(data)]))
            else:
                have = _is_there(before, state, only_grows)
                data = _read(self._folder / path, have or 0, min(room, state.size - (have or 0)))
            if data or have is None:
                pieces.append((path, -1 if have is None else have, len(data)))
                contents.append(data)
            have = have or 0
            room -= len(data)
            files[path] = state._replace(size=have + len(data))
            if have + len(data) < state.size:
                return {"files": files, "pieces": pieces, "more": True}, b"".join(contents)
        return {"files": files, "pieces": pieces, "more": False}, b"".join(contents)

    def _tails(self) -> dict[str, bytes]:
        """Those of what hosts measure, read first: what leaves them meanwhile is in a file that is read then."""
        paths = (path for pattern in _MEASURED for path in self._found(pattern))
        return {str(path.relative_to(self._folder)): _read(path) for path in paths if measured.is_tail(path.name)}

    def _all(self, with_outputs: bool, with_measured: bool) -> Iterator[tuple[str, bool]]:
        for patterns, only_grow in ((_LOGS, True), (_MEASURED if with_measured else (), True), (_WORDS, False)):
            for pattern in patterns:
                names = (str(path.relative_to(self._folder)) for path in self._found(pattern))
                yield from ((name, only_grow and not measured.is_replaced(name)) for name in measured.in_order(names))
        if with_outputs:
            for path in sorted(self._found(f"{_OUTPUTS}/**/*")):
                yield str(path.relative_to(self._folder)), False

    def _found(self, pattern: str) -> list[Path]:
        """The supervisor sets folders aside between two attempts, maybe while they are listed: then all over again."""
        while True:
            try:
                return list(self._folder.glob(pattern))
            except FileNotFoundError:
                continue

    def _state(self, path: str, only_grows: bool) -> FileState | None:
        try:
            status = (self._folder / path).lstat()
        except OSError:
            return None
        if not os.path.isfile(self._folder / path) or os.path.islink(self._folder / path):  # noqa: PTH113, PTH114
            return None
        is_watched = only_grows and Path(path).name.endswith(_WATCHED)
        if is_watched and (path, status.st_ino) not in self._watched:
            self._watched.add((path, status.st_ino))
            self._watch.add(self._folder / path)
        return FileState(status.st_ino, status.st_size, status.st_mtime_ns)


def has_moved(before: str, path: str) -> bool:
    """Whether a file may have been moved from one path to the other, as those of an attempt are when it has ended.

    A number that it has in common with another file says nothing: that of one that is removed is given to the next.
    """
    return before != path and before.rpartition("hosts/")[2] == path.rpartition("hosts/")[2]


def _is_there(before: Sequence[int] | None, state: FileState, only_grows: bool) -> int | None:
    """How many bytes of a file are known already; None where it is another one."""
    if before is None or before[0] != state.inode or before[1] > state.size:
        return None
    return before[1] if only_grows or before[2] == state.changed else None


def _read(path: Path, offset: int = 0, size: int | None = None) -> bytes:
    if size is not None and size <= 0:
        return b""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError:
        return b""
