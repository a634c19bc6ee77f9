"""What a checkpoint folder still holds of a snapshot: files that need not come from the store again."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence

from ...storage import Digest
from .format import File

PIECE_SIZE = 1 << 20  # bytes that are copied at a time


def take_over(folder: str, files: Sequence[File], staging: str) -> dict[str, Digest]:
    """Copy into `staging` each of the files that `folder` still has, byte for byte. Returns those, by path.

    They are copies, and what was copied is what was verified: whoever still has a file of the folder open cannot change
    what is taken over.
    """
    found = {}
    for file in files:
        if _take_over(os.path.join(folder, file.path), os.path.join(staging, file.path), file):
            found[file.path] = Digest(file.size, file.sha256)
    return found


def _take_over(source: str, target: str, file: File) -> bool:
    with contextlib.suppress(OSError):
        if os.path.islink(source) or os.path.getsize(source) != file.size:
            return False
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if _copy(source, target) == file.sha256:
            return True
    with contextlib.suppress(OSError):
        os.unlink(target)
    return False


def _copy(source: str, target: str) -> str:
    """Returns the SHA-256 of what was copied, in hexadecimal. Raises OSError, also for what is not a file."""
    content = hashlib.sha256()
    fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as opened, open(target, "xb") as copied:
        while piece := opened.read(PIECE_SIZE):
            content.update(piece)
            copied.write(piece)
    return content.hexdigest()
