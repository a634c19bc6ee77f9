"""A folder that is known again: whoever removes it and makes another of that name has made another one."""

from __future__ import annotations

import os


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
