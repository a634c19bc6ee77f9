"""The files of the channels in the page cache of a host, or dropped from it, which takes no rights but to read them."""

from __future__ import annotations

import os
from collections.abc import Iterator

CHANNEL = "SM_CHANNEL_"
PIECE = 1 << 20


def warm() -> None:
    """Read all of them once."""
    for path in _files():
        with open(path, "rb", buffering=0) as file:
            while file.read(PIECE):
                pass


def drop() -> None:
    """Have the kernel forget what it holds of them. What somebody maps, or has not written yet, it keeps."""
    for path in _files():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _files() -> Iterator[str]:
    """Those that can be read; a pipe is none."""
    for name, place in os.environ.items():
        if name.startswith(CHANNEL):
            for folder, _, names in os.walk(place, followlinks=True):
                for each in names:
                    path = os.path.join(folder, each)
                    if os.path.isfile(path) and os.access(path, os.R_OK):
                        yield path
