"""The bytes of many objects in order, read ahead of whoever takes them, with a bound on what is held."""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

from ...storage import NotFound, Object, SourceChanged, Store
from ...storage.errors import listed_but_missing
from .channel import ChannelError, ChannelTask

PIECE = 4 << 20  # bytes that are read at once
AHEAD = 32  # pieces: small objects wait for answers rather than for bytes
AHEAD_BYTES = 32 << 20
_RECORD = struct.Struct("<II")
_RECORD_MAGIC = 0xCED7230A  # MXNet's RecordIO, dmlc/recordio.h
_LARGEST_RECORD = (1 << 29) - 1  # the length has 29 bits


@dataclass(frozen=True)
class _Piece:
    object: Object
    number: int
    """Of the object in the stream."""
    start: int
    end: int


def stream(store: Store, objects: Iterable[Object], channel: ChannelTask) -> Iterator[bytes]:
    """What a pipe delivers of the objects in this order. Raises StorageError and ChannelError."""
    pool = ThreadPoolExecutor(AHEAD)
    try:
        read = _ahead(store, _pieces(objects), pool)
        for _, pieces in groupby(read, key=lambda each: each[0].number):
            yield from _delivered(pieces, store, channel)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _delivered(pieces: Iterator[tuple[_Piece, bytes]], store: Store, channel: ChannelTask) -> Iterator[bytes]:
    first, data = next(pieces)
    name = f"{store.uri.rstrip('/')}/{first.object.key}"
    contents = _checked(first, data, pieces, name, store)
    if channel.is_gzipped:
        contents = unpacked(contents, name)
    return wrapped(contents, name) if channel.is_wrapped else contents


def _checked(
    first: _Piece, data: bytes, rest: Iterator[tuple[_Piece, bytes]], name: str, store: Store
) -> Iterator[bytes]:
    """The bytes of one object; its pieces must be of one version."""
    yield data
    last = first
    for last, data in rest:  # noqa: B007 - the last one is wanted
        yield data
    if last.start > 0:
        now = store.head(first.object.key)
        if now is None or now.etag != first.object.etag:
            raise SourceChanged(f"{name} was overwritten while it was being read: start the job again")


def unpacked(contents: Iterable[bytes], name: str) -> Iterator[bytes]:
    """What is inside a gzip file, of one member or several, in pieces of a bounded size."""
    decoder = None
    try:
        for piece in contents:
            data = piece
            while data:
                if decoder is None:
                    data = data.lstrip(b"\0")  # padding between members is allowed
                    decoder = zlib.decompressobj(wbits=31) if data else None
                    continue
                yield decoder.decompress(data, PIECE)
                data = decoder.unconsumed_tail
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
        if decoder is not None:
            yield decoder.flush()
            if not decoder.eof:
                raise zlib.error("it ends too early")
    except zlib.error as error:
        raise ChannelError(
            f"{name} is not a complete gzip file ({error}): leave out compression='Gzip', or compress it again"
        ) from None


def wrapped(contents: Iterable[bytes], name: str) -> Iterator[bytes]:
    """One RecordIO record, padded to a multiple of four bytes."""
    data, size = [], 0
    for piece in contents:
        data.append(piece)
        size += len(piece)
        if size > _LARGEST_RECORD:
            raise ChannelError(f"{name} has more than {_LARGEST_RECORD} bytes, so it is no RecordIO record: split it")
    yield _RECORD.pack(_RECORD_MAGIC, size)
    yield from data
    yield bytes(-size % 4)


def _pieces(objects: Iterable[Object]) -> Iterator[_Piece]:
    for number, each in enumerate(objects):
        for start in range(0, max(each.size, 1), PIECE):
            yield _Piece(each, number, start, min(each.size, start + PIECE))


def _ahead(store: Store, pieces: Iterable[_Piece], pool: ThreadPoolExecutor) -> Iterator[tuple[_Piece, bytes]]:
    """Each piece with its bytes; the next ones are on their way."""
    waiting: deque[tuple[_Piece, Future[bytes]]] = deque()
    held = 0
    for piece in pieces:
        waiting.append((piece, pool.submit(_read, store, piece)))
        held += piece.end - piece.start
        while len(waiting) > AHEAD or held > AHEAD_BYTES:
            done, data = waiting.popleft()
            held -= done.end - done.start
            yield done, data.result()
    for done, data in waiting:
        yield done, data.result()


def _read(store: Store, piece: _Piece) -> bytes:
    try:
        return _read_there(store, piece)
    except NotFound:
        raise listed_but_missing(f"{store.uri.rstrip('/')}/{piece.object.key}") from None


def _read_there(store: Store, piece: _Piece) -> bytes:
    if piece.start == 0 and piece.end == piece.object.size:
        return store.read(piece.object.key)  # whole, so of one version
    data = store.read(piece.object.key, (piece.start, piece.end))
    if len(data) < piece.end - piece.start:
        raise SourceChanged(f"{store.uri}/{piece.object.key} shrank while it was being read: start the job again")
    return data
