"""Framed logs: every byte that a rank writes, with its time, rank and stream, in one file per host.

A frame is a 28-byte little-endian header and a payload. Each is appended with one `writev` to a file
opened with O_APPEND, so the frames of several ranks never interleave. A frame that was cut short (a full
disk, a kill in the middle of the write) is found by its checksum: the reader keeps the bytes that are
there and goes on with the next frame.

    offset  size  field
    0       4     magic, b"\\xf5ESF"
    4       1     stream: 1 stdout, 2 stderr, 3 event (the payload is JSON), 4 the toolkit's own words
    5       3     zero
    8       4     rank, signed; -1 where there is none; of a spawned world, as `number_of` has it
    12      8     time, nanoseconds since 1970
    20      4     payload length in bytes
    24      4     CRC-32 of bytes 0 to 23 and the payload
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections import namedtuple

STDOUT, STDERR, EVENT, TOOLKIT = 1, 2, 3, 4
STREAM_NAMES = {STDOUT: "stdout", STDERR: "stderr", EVENT: "event", TOOLKIT: "toolkit"}
NO_RANK = -1
SPAWNED = 1 << 16
"""From here on ranks are numbered that other ranks started, by MPI_Comm_spawn: see `number_of`."""

MAGIC = b"\xf5ESF"
EVENT_MAGIC = MAGIC + bytes((EVENT,))
"""The first bytes of each event, by which one is found without reading the frames between."""
MAX_PAYLOAD = 1 << 20
_HEAD = struct.Struct("<4sB3xiQI")
_CRC = struct.Struct("<I")
HEADER_SIZE = _HEAD.size + _CRC.size
_TIME_AT = 12  # where the time of a frame is

# A plain namedtuple: `typing` would cost each rank several milliseconds at its start.
Frame = namedtuple("Frame", ["time_ns", "rank", "stream", "data"])
"""time_ns: int, rank: int, stream: int, data: bytes."""


def number_of(world: int, rank: int) -> int:
    """One number for a rank of any world of a job; those of the job's own world, which is 1, keep theirs.

    Worlds are numbered as mpirun numbers them. Those from 32,768 on share a number, for a frame has no room for more.

    >>> number_of(1, 3), number_of(2, 3)
    (3, 65539)
    """
    return min(world - 1, SPAWNED // 2 - 1) * SPAWNED + rank


def world_and_rank(number: int) -> tuple[int, int]:
    """The way back from `number_of`.

    >>> world_and_rank(3), world_and_rank(65539)
    ((1, 3), (2, 3))
    """
    return number // SPAWNED + 1, number % SPAWNED


class FrameWriter:
    """Appends frames to one file. Several processes may each have one on the same file."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, rank: int, stream: int, data: bytes, time_ns: int | None = None) -> None:
        """Append `data` as one frame or more, of now or `time_ns`. Raises OSError when the disk does not take it."""
        for start in range(0, len(data), MAX_PAYLOAD):
            self._append(rank, stream, data[start : start + MAX_PAYLOAD], time_ns)

    def _append(self, rank: int, stream: int, data: bytes, time_ns: int | None) -> None:
        head = _HEAD.pack(MAGIC, stream, rank, time.time_ns() if time_ns is None else time_ns, len(data))
        crc = _CRC.pack(zlib.crc32(data, zlib.crc32(head)))
        written = os.writev(self._fd, [head, crc, data])
        if written < HEADER_SIZE + len(data):
            # The reader salvages what went in; the rest follows as a frame of its own.
            rest = data[max(0, written - HEADER_SIZE) :]
            self._append(rank, stream, rest, time_ns)

    def close(self) -> None:
        """Close the log file."""
        os.close(self._fd)

    def flush(self, seconds: float) -> None:
        """The file has everything."""


class FrameParser:
    """Turns the bytes of a frame file, in pieces of any size, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes."""
        self._buffer += data
        return self._parse(at_end=False)

    def finish(self) -> list[Frame]:
        """What can be salvaged of a frame that was cut short, once no more bytes can come."""
        return self._parse(at_end=True)

    def _parse(self, at_end: bool) -> list[Frame]:
        with memoryview(self._buffer) as view:
            frames, at = self._frames(view, at_end, None)
        del self._buffer[:at]
        return frames

    def located(self, data: bytes) -> list[tuple[int, Frame]]:
        """The frames of a piece of a file that begins and ends with whole ones, each with its place in the piece.

        What was cut short is salvaged. Nothing is kept for another call, and nothing of an earlier one is used.
        """
        places: list[int] = []
        self._buffer = bytearray(data)
        with memoryview(self._buffer) as view:
            frames, _ = self._frames(view, True, places)
        self._buffer = bytearray()
        return list(zip(places, frames))

    def _frames(self, view: memoryview, at_end: bool, places: list[int] | None) -> tuple[list[Frame], int]:
        """The frames that the buffer holds, and how many bytes they took; `places` takes where each begins."""
        frames, at = [], 0
        while len(self._buffer) - at >= HEADER_SIZE:
            magic, stream, rank, time_ns, length = _HEAD.unpack_from(self._buffer, at)
            if magic != MAGIC or length > MAX_PAYLOAD or stream not in STREAM_NAMES:
                at = self._next_magic(at + 1, at_end)
                continue
            end = at + HEADER_SIZE + length
            if end > len(self._buffer) and not at_end:
                break
            if not _is_intact(view, at, end):
                # It was cut short if another frame begins before its end, which may be only half there.
                if end + len(MAGIC) > len(self._buffer) and not at_end:
                    break
                found = self._buffer.find(MAGIC, at + 1, end + len(MAGIC))
                end = found if found >= 0 else end
            payload = bytes(view[at + HEADER_SIZE : end])
            if payload:
                frames.append(Frame(time_ns, rank, stream, payload))
                if places is not None:
                    places.append(at)
            at = end
        return frames, at

    def _next_magic(self, start: int, at_end: bool) -> int:
        found = self._buffer.find(MAGIC, start)
        if found >= 0:
            return found
        # Keep what could be the beginning of a magic number whose end has not come yet.
        return max(start, len(self._buffer) - (0 if at_end else len(MAGIC) - 1))


def frame_begin(stream: int, rank: int) -> bytes:
    """The first bytes of each frame of a stream of a rank, by which one is found without reading those between."""
    return _HEAD.pack(MAGIC, stream, rank, 0, 0)[:_TIME_AT]


def end_of_frame(data: bytes, at: int) -> int | None:
    """Where the frame ends that begins at a place of a piece of a file; None where none begins there.

    One that ends behind the piece is taken on trust: its checksum cannot be told.
    """
    if len(data) - at < HEADER_SIZE:
        return None
    magic, stream, _, _, length = _HEAD.unpack_from(data, at)
    if magic != MAGIC or length > MAX_PAYLOAD or stream not in STREAM_NAMES:
        return None
    end: int = at + HEADER_SIZE + length
    with memoryview(data) as view:
        return end if end > len(data) or _is_intact(view, at, end) else None


def time_of_frame(data: bytes, at: int) -> int:
    """The time, in nanoseconds since 1970, of the frame that begins at a place where `end_of_frame` finds one."""
    return int.from_bytes(data[at + _TIME_AT : at + _TIME_AT + 8], "little")


def _is_intact(view: memoryview, at: int, end: int) -> bool:
    (crc,) = _CRC.unpack_from(view, at + _HEAD.size)
    head, payload = view[at : at + _HEAD.size], view[at + HEADER_SIZE : end]
    return end <= len(view) and bool(zlib.crc32(payload, zlib.crc32(head)) == crc)
