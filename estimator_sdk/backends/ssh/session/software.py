"""The software that the machines of a pool are given: both packages, as an archive under the hash of its bytes."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import tarfile
import threading
from pathlib import Path

import estimator_container

from ...packages import CLIENT_OF_STORES, files_of

BOOT = Path(__file__).with_name("boot.py")
"""What brings it there and runs it; it is sent as text, and needs nothing."""
STORES = "stores"
"""The folder of the software that has the client of s3:// stores, where a job has one: scripts do not see it."""
_packing = threading.Lock()
"""So that it is packed once, however many machines are asked at once."""


def digest(with_stores: bool = False) -> str:
    """The SHA-256 of what is in the archive in hex: the same wherever the same packages are packed."""
    with _packing:
        return _digest(with_stores)


def archive(with_stores: bool = False) -> bytes:
    """The archive, which most machines have already."""
    with _packing:
        return _archive(with_stores)


@functools.cache
def _digest(with_stores: bool) -> str:
    return hashlib.sha256(_packed(with_stores)).hexdigest()


@functools.cache
def _archive(with_stores: bool) -> bytes:
    return gzip.compress(_packed(with_stores), 6, mtime=0)


@functools.cache
def _packed(with_stores: bool) -> bytes:
    files = {}
    for folder in (Path(__file__).parents[3], Path(estimator_container.__file__).parent):
        for path in folder.rglob("*.py"):
            files[f"{folder.name}/{path.relative_to(folder)}"] = path
    if with_stores:
        files |= {f"{STORES}/{name}": path for name, path in files_of(*CLIENT_OF_STORES).items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            data = files[name].read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o600
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
