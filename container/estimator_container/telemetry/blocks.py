"""Rows of whole numbers as few bytes: columns of differences, written as varints and deflated.

    block    varint(rows), for each row varint(difference of its time to the one before), and each column
    column   for each row: 0 where the value is absent, else varint(1 + zigzag(difference to the value before))
    record   a head of 25 bytes, little-endian, and a body
    head     length of the body (4 bytes), CRC-32 of the body (4), kind (1), first and last time in the body (8 each)
    kinds    S, the series of the blocks that follow, as JSON; B, a deflated block; R, a block as it is

Times are milliseconds since 1970. A record that was cut short is the last one that is read of its file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SERIES, DEFLATED, PLAIN = b"S", b"B", b"R"
_HEAD = struct.Struct("<IIcqq")
_MOST_BYTES, _MOST_ROWS = 1 << 23, 1 << 12
"""Of a block; what says more is damaged, or no block of ours."""
_MOST_BITS = 70
"""Of a number."""


class Row(NamedTuple):
    """The values of all series at one time."""

    time_ms: int
    values: Sequence[int | None]


class FileRecord(NamedTuple):
    """One record of a file."""

    kind: bytes
    first_ms: int
    last_ms: int
    body: bytes
    """As it is in the file."""
    end: int
    """Where the record ends in its file."""

    def columns(self, count: int) -> tuple[list[int], list[list[int | None]]]:
        """The times of a block, and its columns, of which it has so many. Raises ValueError if it has fewer."""
        data = zlib.decompressobj().decompress(self.body, _MOST_BYTES) if self.kind == DEFLATED else self.body
        try:
            return _decode(_numbers(data), count)
        except StopIteration:
            raise ValueError(f"a block with fewer than {count} columns") from None


def block(kind: bytes, rows: Sequence[Row]) -> bytes:
    """A record of rows, each with as many values as the first."""
    out = bytearray()
    _put(out, len(rows))
    before = 0
    for row in rows:
        _put(out, row.time_ms - before)
        before = row.time_ms
    for column in zip(*(row.values for row in rows)):
        last = 0
        for value in column:
            if value is None:
                out.append(0)
                continue
            step = value - last
            last = value
            _put(out, 1 + (step << 1 if step >= 0 else (-step << 1) - 1))
    body = zlib.compress(bytes(out), 9) if kind == DEFLATED else bytes(out)
    return record(kind, body, rows[0].time_ms, rows[-1].time_ms)


def record(kind: bytes, body: bytes, first_ms: int = 0, last_ms: int = 0) -> bytes:
    """A record with that body."""
    return _HEAD.pack(len(body), zlib.crc32(body), kind, first_ms, last_ms) + body


def records(data: bytes) -> Iterator[FileRecord]:
    """The whole records that a file begins with."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum, kind, first_ms, last_ms = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        body = data[at + _HEAD.size : end]
        if end > len(data) or zlib.crc32(body) != checksum:
            return
        yield FileRecord(kind, first_ms, last_ms, body, end)
        at = end


def _decode(numbers: Iterator[int], count: int) -> tuple[list[int], list[list[int | None]]]:
    rows = range(next(numbers))
    if rows.stop > _MOST_ROWS:
        raise ValueError(f"a block of {rows.stop} rows")
    times, time = [], 0
    for _ in rows:
        time += next(numbers)
        times.append(time)
    columns = []
    for _ in range(count):
        last = 0
        column: list[int | None] = []
        for _ in rows:
            coded = next(numbers)
            if coded == 0:
                column.append(None)
                continue
            last += -(coded >> 1) if coded & 1 == 0 else coded >> 1
            column.append(last)
        columns.append(column)
    return times, columns


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift > _MOST_BITS:
                raise ValueError("a number that is too long")
        else:
            yield number
            number = shift = 0
