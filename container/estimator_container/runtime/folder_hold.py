"""A folder that is known again: whoever removes it and makes another of that name has made another one."""

from __future__ import annotations

import os
from typing import NamedTuple


class FolderReplaced(OSError):
    """The folder that a process was told to hold is no longer the one at its path."""


class HeldFolder(NamedTuple):
    """A folder that one process holds, told to another: as long as the first one does, no other has these numbers."""

    path: str
    device: int
    inode: int

    def hold(self) -> FolderHold:
        """Hold it, too. Raises FolderReplaced where another folder, or none, is at its path, and OSError."""
        try:
            found = FolderHold(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise FolderReplaced(self.replaced) from None
        if found.identity != self:
            found.close()
            raise FolderReplaced(self.replaced)
        return found

    @property
    def replaced(self) -> str:
        """The sentence for whoever works there once that is so."""
        return f"the job's folder {self.path} was removed or replaced, so nothing in it belongs to this job"


class FolderHold:
    """The folder that is at a path when this is made."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._path = path
        # As long as it is open, no other folder gets its number.
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._fd

    @property
    def identity(self) -> HeldFolder:
        """What tells it from any other, for a process of this machine. Raises OSError."""
        held = os.fstat(self._fd)
        return HeldFolder(self._path, held.st_dev, held.st_ino)

    def close(self) -> None:
        """Hold it no longer."""
        os.close(self._fd)

    def is_there(self) -> bool:
        """Whether it is still the one at the path; also where that cannot be told, as while a file system is away."""
        try:
            held = os.fstat(self._fd)
        except OSError:  # of a network file system, where it was removed on another machine
            return False
        try:
            return os.path.samestat(os.stat(self._path), held)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
