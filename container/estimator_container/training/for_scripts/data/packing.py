"""Making tar shards of a folder with many small files, and the list of the shards of a data set."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import random
import stat
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from estimator_container.storage import Object, Store, open_store

from .errors import DataError
from .reading import formats, shards
from .reading.disk_cache import DiskCache
from .reading.formats import TarSample, key_and_field
from .reading.reader import count_samples, open_object

Files = Mapping[str, str]
"""What each file is of a sample -> its path."""
Progress = Callable[[int, int], None]
"""Called with the bytes and the shards so far."""


class Packed(NamedTuple):
    """What came of it."""

    shards: int
    samples: int
    size: int
    """In bytes, of all shards."""
    lacking: str = ""
    """What some samples have and others do not, such as a label; empty where all have the same parts."""


def pack(folder: str, target: str, shard_size: int, seed: int | None, progress: Progress | None = None) -> Packed:
    """Make shards at the URI `target` of the samples in a folder, read them back, and compare each with its files.

    Files whose names differ only behind the first dot are one sample, as webdataset has it. A shard holds about
    `shard_size` bytes. With a seed the samples are shuffled first, for those of one shard are often alike. The list of
    the shards is written last, so that a target without one is not whole.
    Raises DataError for a target that has something or lies in the folder, files that belong to no sample, and a sample
    that differs.
    """
    _check_apart(folder, target)
    store = open_store(target)
    there = next(iter(store.list()), None)
    if there is not None:
        raise DataError(f"{target} has files already, such as {there.key!r}: name a folder that is empty")
    samples = samples_of(folder)
    keys = sorted(samples)
    if seed is not None:
        random.Random(seed).shuffle(keys)
    digests: list[list[bytes]] = []
    names: list[str] = []
    size = 0
    for group in _groups(keys, samples, shard_size):
        names.append(f"shard-{len(names):06}.tar")
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            digests.append(_write(file, group, samples))
            size += store.upload(file.name, names[-1]).size
        if progress is not None:
            progress(size, len(names))
    objects = _compared(store, target, names, digests)
    index = shards.index_of(names, [len(each) for each in digests], [each.size for each in objects])
    store.write(shards.INDEX, index)
    return Packed(len(names), len(keys), size, lacking(samples))


def index(target: str, pattern: str | None) -> Packed:
    """Write the list of the shards at a URI, with the number of samples of each. Raises DataError and StorageError."""
    store = open_store(target)
    source = shards.source_of(target)
    count = functools.partial(count_samples, source, None if source.is_at_hand else DiskCache(target, 0))
    found = shards.find(source, pattern, None, count, trusts_index=False)
    names, sizes = [each.key for each in found.objects], [each.size for each in found.objects]
    store.write(shards.INDEX, shards.index_of(names, found.samples, sizes))
    return Packed(len(names), sum(found.samples), sum(sizes))


def samples_of(folder: str) -> Mapping[str, Files]:
    """Key -> the files of the sample, by what they are of it. Hidden files are none.

    Raises DataError for a folder without files, a file that no sample has, and two files that are the same of one.
    """
    found: dict[str, dict[str, str]] = {}
    for path in _paths(folder):
        name = os.path.relpath(path, folder)
        split = key_and_field(name)
        if split is None:
            raise DataError(
                f"{path} belongs to no sample, for its name has nothing before or after the first dot: give it an "
                "ending that says what it is, such as '.txt', or move it away"
            )
        key, field = split
        other = found.setdefault(key, {}).setdefault(field, path)
        if other != path:
            raise DataError(f"{other} and {path} are both {field!r} of the sample {key!r}: rename one of them")
    if not found:
        raise DataError(f"{folder} has no files: check the path")
    return found


def lacking(samples: Mapping[str, Files]) -> str:
    """What some samples have and others do not, such as a label; empty where all have the same parts.

    >>> lacking({"1": {"jpg": "1.jpg", "cls": "1.cls"}, "2": {"jpg": "2.jpg"}})
    "1 of 2 samples have 'cls', and others, such as '2', do not"
    """
    counts = Counter(field for files in samples.values() for field in files)
    field, count = min(counts.items(), key=lambda each: each[1])
    if count == len(samples):
        return ""
    without = next(key for key, files in samples.items() if field not in files)
    return f"{count} of {len(samples)} samples have {field!r}, and others, such as {without!r}, do not"


def _check_apart(folder: str, target: str) -> None:
    """Raises DataError for a target in the folder, whose shards would be files to pack the next time."""
    place = os.path.realpath(target[len("file://") :]) if target.startswith("file://") else ""
    whole = os.path.realpath(folder)
    if place and os.path.commonpath([place, whole]) == whole:
        raise DataError(f"{target} lies in {folder}, whose files are to be packed: name a place outside of it")


def _paths(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (os.path.join(above, name) for name in folders):
            if os.path.islink(path) and f"{os.path.realpath(above)}/".startswith(f"{os.path.realpath(path)}/"):
                raise DataError(f"{path} is a link to a folder that it lies in, which has no end: remove it")
        for path in (os.path.join(above, name) for name in sorted(names) if not name.startswith(".")):
            _check_file(path)
            yield path


def _check_file(path: str) -> None:
    try:
        kind = os.stat(path).st_mode
    except OSError as error:
        what = "is a link to what is not there" if os.path.islink(path) else f"cannot be read ({error.strerror})"
        raise DataError(f"{path} {what}: bring the file, or move it away") from None
    if not stat.S_ISREG(kind):
        raise DataError(f"{path} is not a file, but a pipe, a socket or a device: move it away")


def _raise(error: OSError) -> None:
    raise DataError(f"{error.filename} cannot be listed ({error.strerror}): check the path and who may read it")


def _groups(keys: Sequence[str], samples: Mapping[str, Files], size: int) -> Iterator[list[str]]:
    """The samples of each shard."""
    group: list[str] = []
    total = 0
    for key in keys:
        group.append(key)
        total += sum(os.path.getsize(path) for path in samples[key].values())
        if total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group


def _write(file: IO[bytes], keys: Sequence[str], samples: Mapping[str, Files]) -> list[bytes]:
    """Make a shard of these samples, and return what each is known by. Raises DataError where there is no room."""
    try:
        with tarfile.open(fileobj=file, mode="w") as tar:
            digests = [_add(tar, key, samples[key]) for key in keys]
        file.flush()
    except OSError as error:
        what = f"no shard can be made in {os.path.dirname(file.name)} ({error.strerror})"
        raise DataError(f"{what}: free some space, set TMPDIR to another folder, or make smaller shards") from None
    return digests


def _add(tar: tarfile.TarFile, key: str, files: Files) -> bytes:
    """Add a sample to a shard, and return what it is known by; nothing of the machine, or the time, is kept."""
    sample: TarSample = {formats.KEY: key}
    for field in sorted(files):
        try:
            with open(files[field], "rb") as file:
                content = sample[field] = file.read()
        except OSError as error:
            raise DataError(f"{files[field]} cannot be read ({error.strerror}): check who may read it") from None
        member = tarfile.TarInfo(f"{key}.{field}")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return _digest(sample)


def _digest(sample: TarSample) -> bytes:
    found = hashlib.sha256()
    for name, content in sorted(sample.items()):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        found.update(f"{len(name)} {len(data)} {name}".encode("utf-8", "surrogateescape"))
        found.update(data)
    return found.digest()


def _compared(store: Store, target: str, names: Sequence[str], digests: Sequence[Sequence[bytes]]) -> list[Object]:
    """Read the shards as scripts do; raises DataError unless each sample is what its files were."""
    source = shards.source_of(target)
    cache = None if source.is_at_hand else DiskCache(target, 0)
    listed = {each.key: each for each in store.list()}
    for name, expected in zip(names, digests):
        if name not in listed:
            raise DataError(f"{name} is not at {target} any more: pack it again, into an empty folder")
        with open_object(source, cache, listed[name]) as file:
            found = [_digest(sample) for sample in formats.open_shard("tar", file)]
        if found != list(expected):
            raise DataError(f"{name} at {target} does not give the samples that went into it: pack it again")
    return [listed[name] for name in names]
