"""Small files travel together: to a store a request is more work than the bytes of a small file.

An object that holds several files, one after the other, is a pack. It is written and read whole.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, NamedTuple

from ...storage import Digest, Object, Progress, Store
from ...storage.landing import Landing
from ...storage.parallel import in_threads
from ...storage.source import UploadSource
from .format import File

SMALL = 1 << 20  # bytes; a larger file has an object of its own
FULL = 4 << 20  # bytes; a pack that has as many takes no more files, so a thread holds 5 MiB at most


class Stored(NamedTuple):
    """The bytes of a file and where they are, as a `File` says it."""

    object: str
    offset: int
    shared: int
    digest: Digest


class _Pack(NamedTuple):
    """What was written or read as one object."""

    files: Mapping[str, Stored]

    @property
    def size(self) -> int:
        return sum(stored.digest.size for stored in self.files.values())


def upload(store: Store, sizes: Mapping[str, int], new_key: Callable[[], str]) -> dict[str, Stored]:
    """Send files, given as path -> bytes.

    Raises SourceChanged for one that is written meanwhile, NotFound for one that is not there, and StorageError.
    """
    packs = _packs([path for path, size in sizes.items() if size <= SMALL], sizes)
    alone = [path for path, size in sizes.items() if size > SMALL] + [pack[0] for pack in packs if len(pack) == 1]
    keys = [new_key() for _ in alone]
    digests = store.upload_many(zip(alone, keys))
    stored = {path: Stored(key, 0, 0, digest) for path, key, digest in zip(alone, keys, digests)}
    shared = [(new_key(), pack) for pack in packs if len(pack) > 1]
    for pack in in_threads(lambda item: _send(store, item[0], item[1], sizes), shared, None):
        stored.update(pack.files)
    return stored


def _packs(paths: Iterable[str], sizes: Mapping[str, int]) -> list[list[str]]:
    packs: list[list[str]] = []
    filled = FULL
    for path in paths:
        if filled >= FULL:
            packs.append([])
            filled = 0
        packs[-1].append(path)
        filled += sizes[path]
    return packs


def _send(store: Store, key: str, paths: Sequence[str], sizes: Mapping[str, int]) -> _Pack:
    contents = []
    for path in paths:
        with UploadSource(path) as source:
            contents.append(source.read(0, sizes[path]))
            source.check()
    whole = b"".join(contents)
    store.write(key, whole)
    files: dict[str, Stored] = {}
    offset = 0
    for path, content in zip(paths, contents):
        files[path] = Stored(key, offset, len(whole), _digest(content))
        offset += len(content)
    return _Pack(files)


def download(store: Store, files: Sequence[File], folder: str, progress: Progress | None) -> dict[str, Digest]:
    """Put files below a folder. Returns what came, by path. Raises NotFound, SourceChanged and StorageError."""
    packs: dict[str, list[File]] = {}
    for file in files:
        if file.shared:
            packs.setdefault(file.object, []).append(file)
    digests: dict[str, Digest] = {}
    for pack in in_threads(lambda members: _receive(store, members, folder), packs.values(), progress):
        digests.update((path, stored.digest) for path, stored in pack.files.items())
    alone = [file for file in files if not file.shared]
    # Nothing writes an object twice, so any version of it will do; with its size it comes in parts at once.
    items = [(Object(file.object, file.size, ""), os.path.join(folder, file.path)) for file in alone]
    came = store.download_many(items, progress=_after(digests, len(packs), progress))
    return {**digests, **{file.path: digest for file, digest in zip(alone, came)}}


def _receive(store: Store, files: Sequence[File], folder: str) -> _Pack:
    whole = memoryview(store.read(files[0].object))
    stored = {}
    for file in files:
        content = whole[file.offset : file.offset + file.size]
        with Landing(os.path.join(folder, file.path)) as landing:
            landing.write(content)
            landing.commit()
        stored[file.path] = Stored(file.object, file.offset, file.shared, _digest(content))
    return _Pack(stored)


def _digest(content: bytes | memoryview) -> Digest:
    return Digest(len(content), hashlib.sha256(content).hexdigest())


def _after(digests: Mapping[str, Digest], objects: int, progress: Progress | None) -> Progress | None:
    """Progress that goes on where so much is done."""
    size = sum(digest.size for digest in digests.values())
    return progress and (lambda more, further: progress(size + more, objects + further))


def wasteful(files: Iterable[File]) -> set[str]:
    """The packs of which these files are less than half, if together they keep more than a pack of nothing."""
    live = Counter[str]()
    sizes: dict[str, int] = {}
    for file in files:
        if file.shared:
            live[file.object] += file.size
            sizes[file.object] = file.shared
    found = {key for key, size in sizes.items() if 2 * live[key] < size}
    return found if sum(sizes[key] - live[key] for key in found) > FULL else set()
