"""The code bundle: a `tar.gz` whose bytes depend on names, contents and exec bits, and on nothing else."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from ..values.home import private_file

_CHUNK = 1 << 20  # bytes read at once


def write(members: Mapping[str, Path], path: Path, targets: Mapping[str, str] | None = None) -> str:
    """Write the files, folders and links of `members` (name -> where it is) to the new archive `path`.

    A link leads where `targets` says by its name, else where it says itself. Names are sorted; times, owners and the
    gzip header are blank; modes are 700 or 600, for sources that others could not read stay so. So the same tree gives
    the same bytes, wherever and whenever it is bundled with the same zlib. Returns the archive's SHA-256 in hex. Raises
    OSError for what cannot be read or written.
    """
    with (
        open(path, "wb", opener=private_file) as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(members):
            _add(tar, name, members[name], (targets or {}).get(name))
    with path.open("rb") as written:
        return _sha256(written)


def _add(tar: tarfile.TarFile, name: str, path: Path, target: str | None) -> None:
    status = path.lstat()
    member = tarfile.TarInfo(name)
    member.mode = 0o700 if stat.S_ISDIR(status.st_mode) or status.st_mode & stat.S_IXUSR else 0o600
    if stat.S_ISLNK(status.st_mode):
        # Systems differ in what they say of a link's own mode.
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, target or str(path.readlink()), 0o777
    elif stat.S_ISDIR(status.st_mode):
        member.type = tarfile.DIRTYPE
    else:
        with path.open("rb") as content:
            member.size = os.fstat(content.fileno()).st_size
            tar.addfile(member, content)
        return
    tar.addfile(member)


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
