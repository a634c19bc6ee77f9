"""Data sets to read in tests."""

from __future__ import annotations

import io
import itertools
import tarfile

SIZES = (5, 1, 9, 3, 7)
"""Of the shards: as uneven as they come."""
NUMBERS = list(range(sum(SIZES)))


def tar_of(path, contents):
    """A shard whose samples are (key, field -> bytes)."""
    with tarfile.open(path, "w") as tar:
        for key, fields in contents:
            for field, content in fields.items():
                member = tarfile.TarInfo(f"{key}.{field}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def numbered(folder, sizes=SIZES):
    """Shards of so many samples, each with a number of its own."""
    numbers = iter(range(sum(sizes)))
    folder.mkdir(exist_ok=True)
    for shard, size in enumerate(sizes):
        samples = [(f"{next(numbers):05}", {"txt": b""}) for _ in range(size)]
        tar_of(folder / f"{shard}.tar", [(key, {"txt": str(int(key)).encode()}) for key, _ in samples])
    return str(folder)


def flat(batches):
    """The samples of all batches."""
    return list(itertools.chain.from_iterable(batches))


def number(sample):
    """For `decode=`."""
    return int(sample["txt"])
