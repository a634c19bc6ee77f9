"""A lock on a folder, which ends with whoever has it."""

from __future__ import annotations

import fcntl
import time

REST_SECONDS = 0.01
"""Between two tries: the kernel tells nobody who waits for at most so long."""


def lock(fd: int, seconds: float) -> None:
    """Keep all others out of an open folder until it is closed.

    Raises TimeoutError where another has locked it for so long, and OSError.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError("another has locked it for long") from None
        time.sleep(REST_SECONDS)
