"""A folder that is known again: whoever removes it and makes another of that name has made another one."""

from __future__ import annotations

import os


class Held:
    """The folder that is at a path when this is made."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._path = path
        # As long as it is open, no other folder gets its number.
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def is_there(self) -> bool:
        """Whether it is still the one at the path."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except OSError:
            return False
