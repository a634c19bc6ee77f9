"""The merged view of a job's logs: whole lines, each with the host, rank and stream it came from.

What is held back for the end of its line is bounded, so a line that is longer than `LONGEST_LINE`, or is drawn again
and again by `\\r` as a progress bar is, comes in pieces: lines that lack their end, of which the next one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .frames import EVENT, NO_RANK, STREAM_NAMES, Frame, world_and_rank

LONGEST_LINE = 1 << 21
"""Bytes of a line that are held back for its end."""
LONGEST_REDRAWN = 1 << 16
"""The same for what a `\\r` lets the rest of its line overwrite; a piece of such a line ends at one."""
MOST_HELD = 1 << 26
"""Bytes that all unfinished lines of a host may take."""
_ENTRY = 512
"""Bytes that an unfinished line takes besides its own."""
STATE_SIZE = 1 << 12
"""Bytes that are given of the newest state of an unfinished line."""


class Line(NamedTuple):
    """One line that a rank, a script or the toolkit wrote."""

    time_ns: int
    """When its last byte was read from the rank's pipe: nanoseconds since 1970."""
    host: str
    rank: int | None
    """The rank in the MPI world; None for a script without a world and for the toolkit.

    A rank that another one has spawned has the number that `frames.number_of` gives it: from 65,536 on.
    """
    stream: str
    """`stdout` or `stderr` of the script; `toolkit` for the words of pip, mpirun and the toolkit itself."""
    data: bytes
    """The bytes as written, with the line's end; only the last line of a stream, and a piece of one, lacks it."""

    @property
    def tag(self) -> str:
        """The classic form `[1,RANK]<stdout>:`; without ranks the host stands in the brackets.

        As mpirun has it, the first number is that of the world: from 2 on for those that ranks have spawned.
        """
        origin = self.host if self.rank is None else "{},{}".format(*world_and_rank(self.rank))
        return f"[{origin}]<{self.stream}>:"

    def tagged(self) -> bytes:
        """As the merged view shows it, each line of it: tag, bytes, and always an end of line."""
        tag = self.tag.encode()
        return b"".join((tag, self.data.removesuffix(b"\n").replace(b"\n", b"\n" + tag), b"\n"))


class Block(Line):
    """Lines that one stream wrote in a row and that came together, with one time: what reads many lines reads them so.

    Only the last of them may lack its end, as in `Line`.
    """

    __slots__ = ()

    def lines(self) -> Iterator[Line]:
        """The lines of the block, in order; the last one lacks its newline if the block does not end with one."""
        *whole, rest = self.data.split(b"\n")
        time_ns, host, rank, stream, _ = self
        for part in whole:
            yield Line(time_ns, host, rank, stream, part + b"\n")
        if rest:
            yield Line(time_ns, host, rank, stream, rest)


class _OpenLine:
    """The begin of a line whose end has not come yet."""

    __slots__ = ("data", "is_news", "time_ns", "turn")

    def __init__(self) -> None:
        self.data = bytearray()
        self.time_ns = 0
        self.turn = 0
        """Where its newest state begins: behind the last `\\r` that something follows."""
        self.is_news = True

    def add(self, time_ns: int, data: bytes) -> None:
        at = data.rfind(b"\r", 0, len(data) - 1)
        if at >= 0 or self.data.endswith(b"\r"):
            self.turn = len(self.data) + at + 1
        self.data += data
        self.time_ns, self.is_news = time_ns, True

    def take_excess(self, has_room: bool) -> bytes:
        """What is too long to be held back; of a line that is drawn again, all but its newest state."""
        end = 0
        if self.turn and (len(self.data) > LONGEST_REDRAWN or not has_room):
            end = self.turn
        elif len(self.data) > LONGEST_LINE or not has_room:
            end = len(self.data)
        taken = bytes(self.data[:end])
        del self.data[:end]
        self.turn = 0 if end else self.turn
        return taken


class LineAssembler:
    """Makes whole lines of one host's frames, stream by stream."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._open: dict[tuple[int, int], _OpenLine] = {}
        self._held = 0
        self.has_news = False
        """Whether `news` has something to tell."""

    def feed(self, frame: Frame) -> Block | None:
        """The lines that a frame completes."""
        if frame.stream == EVENT:
            return None
        key = (frame.rank, frame.stream)
        end = frame.data.rfind(b"\n") + 1
        whole, rest = frame.data[:end], frame.data[end:]
        if whole and key in self._open:
            whole = bytes(self._close(key).data) + whole
        if rest:
            whole += self._hold(key, frame.time_ns, rest)
        return Block(frame.time_ns, *self._origin(key), whole) if whole else None

    def news(self) -> Iterator[Line]:
        """The newest states of the lines that have grown since the last call and have no end yet.

        The state of a line is what follows its last `\\r`, as far as `STATE_SIZE`; its bytes come again with its end.
        """
        self.has_news = False
        for key, line in self._open.items():
            if line.is_news:
                line.is_news = False
                state = bytes(line.data[line.turn : line.turn + STATE_SIZE])
                yield Line(line.time_ns, *self._origin(key), state)

    def flush(self) -> Iterator[Block]:
        """What is left without an end of line; call it when no more frames can come."""
        for key in list(self._open):
            line = self._close(key)
            yield Block(line.time_ns, *self._origin(key), bytes(line.data))

    def _hold(self, key: tuple[int, int], time_ns: int, data: bytes) -> bytes:
        """Keep the begin of a line, or more of it; returns what there is no room for."""
        line = self._open.get(key)
        if line is None:
            line = self._open[key] = _OpenLine()
            self._held += _ENTRY
        line.add(time_ns, data)
        self._held += len(data)
        self.has_news = True
        excess = line.take_excess(self._held <= MOST_HELD)
        self._held -= len(excess)
        if not line.data:
            self._close(key)
        return excess

    def _close(self, key: tuple[int, int]) -> _OpenLine:
        line = self._open.pop(key)
        self._held -= _ENTRY + len(line.data)
        return line

    def _origin(self, key: tuple[int, int]) -> tuple[str, int | None, str]:
        """The host, rank and stream of a line."""
        rank, stream = key
        return self._host, None if rank == NO_RANK else rank, STREAM_NAMES[stream]
