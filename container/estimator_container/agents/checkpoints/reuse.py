"""What a checkpoint folder still holds of a snapshot: files that need not come from the store again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Sequence

from ...storage import Digest
from .format import File

PIECE = 1 << 20  # bytes that are read at a time


def take_over(folder: str, files: Sequence[File], staging: str) -> dict[str, Digest]:
    """Link into `staging` each of the files that is in `folder`, byte for byte. Returns those, by path.

    Nothing may still write to the folder. A file system without hard links has nothing to take over.
    """
    found = {}
    for file in files:
        digest = _take_over(os.path.join(folder, file.path), os.path.join(staging, file.path), file)
        if digest is not None:
            found[file.path] = digest
    return found


def _take_over(source: str, target: str, file: File) -> Digest | None:
    with contextlib.suppress(OSError):
        status = os.lstat(source)
        if not stat.S_ISREG(status.st_mode) or status.st_size != file.size or status.st_nlink != 1:
            return None
        if _sha256(source) != file.sha256:
            return None
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(source, target)
        return Digest(file.size, file.sha256)
    return None


def _sha256(path: str) -> str:
    content = hashlib.sha256()
    with open(path, "rb", buffering=0) as opened:
        while piece := opened.read(PIECE):
            content.update(piece)
    return content.hexdigest()
