"""The merged view of a job's logs: whole lines, each with the host, rank and stream it came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .frames import EVENT, NO_RANK, STREAM_NAMES, Frame


class Line(NamedTuple):
    """One line that a rank, a script or the toolkit wrote."""

    time_ns: int
    """When its last byte was read from the rank's pipe: nanoseconds since 1970."""
    host: str
    rank: int | None
    """The rank in the MPI world; None for a script without a world and for the toolkit."""
    stream: str
    """`stdout` or `stderr` of the script; `toolkit` for the words of pip, mpirun and the toolkit itself."""
    data: bytes
    """The bytes as written, with the line's end; only the last line of a stream may lack it."""

    @property
    def tag(self) -> str:
        """The classic form `[1,RANK]<stdout>:`; without ranks the host stands in the brackets."""
        return _tag(self.host, self.rank, self.stream)

    def tagged(self) -> bytes:
        """The line as the merged view shows it: tag, bytes, and always an end of line."""
        return self.tag.encode() + self.data + (b"" if self.data.endswith(b"\n") else b"\n")


class Block(NamedTuple):
    """Lines that one stream wrote in a row and that came together: what reads many lines reads them so."""

    time_ns: int
    """Of all its lines, as `Line` has it."""
    host: str
    rank: int | None
    stream: str
    data: bytes
    """Whole lines; only the last one of a stream may lack its end."""

    def lines(self) -> Iterator[Line]:
        *whole, rest = self.data.split(b"\n")
        time_ns, host, rank, stream, _ = self
        for part in whole:
            yield Line(time_ns, host, rank, stream, part + b"\n")
        if rest:
            yield Line(time_ns, host, rank, stream, rest)

    def tagged(self) -> bytes:
        """What `Line.tagged` gives for each line, together."""
        tag = _tag(self.host, self.rank, self.stream).encode()
        return b"".join((tag, self.data.removesuffix(b"\n").replace(b"\n", b"\n" + tag), b"\n"))


def _tag(host: str, rank: int | None, stream: str) -> str:
    return f"[{host if rank is None else f'1,{rank}'}]<{stream}>:"


class LineAssembler:
    """Makes whole lines of one host's frames, stream by stream."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._open: dict[tuple[int, int], tuple[int, list[bytes]]] = {}

    def feed(self, frame: Frame) -> Block | None:
        """The lines that a frame completes."""
        if frame.stream == EVENT:
            return None
        key = (frame.rank, frame.stream)
        end = frame.data.rfind(b"\n") + 1
        whole, rest = frame.data[:end], frame.data[end:]
        if whole and key in self._open:
            _, begun = self._open.pop(key)
            whole = b"".join([*begun, whole])
        if rest:
            _, begun = self._open.get(key, (0, []))
            begun.append(rest)
            self._open[key] = (frame.time_ns, begun)
        return Block(frame.time_ns, *self._origin(key), whole) if whole else None

    def flush(self) -> Iterator[Block]:
        """What is left without an end of line; call it when no more frames can come."""
        unfinished, self._open = self._open, {}
        for key, (time_ns, begun) in unfinished.items():
            yield Block(time_ns, *self._origin(key), b"".join(begun))

    def _origin(self, key: tuple[int, int]) -> tuple[str, int | None, str]:
        """The host, rank and stream of a line."""
        rank, stream = key
        return self._host, None if rank == NO_RANK else rank, STREAM_NAMES[stream]
