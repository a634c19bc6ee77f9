"""What keepers have left on this machine that were killed, or whose machine lost its power: the next one removes it.

A keeper holds a lock on its log, which the kernel ends with it. What is below a home that machines share is left to
the machine whose name the log begins with: not every network's file system tells one machine of the locks of another.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from pathlib import Path

from estimator_container.contract.names import Layout
from estimator_container.runtime import machine

from .. import words

_ELSEWHERE = "base"
"""A link in a keeper's folder to the base directory of its host, where that is elsewhere on the machine."""
_OF_POOL = re.compile(r".+\.([0-9a-f]{16})\.\d+")
"""The name of a keeper, which has the mark of its job."""


def log_to(path: str) -> None:
    """Write what this program says to a file, which is held as long as it lives. Raises OSError."""
    written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with contextlib.suppress(OSError):  # where there are no locks, nothing is removed
        fcntl.flock(written, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(written, _first_line())
    for stream in (1, 2):
        os.dup2(written, stream)
    os.close(written)


def tell_base(folder: Path, base: str) -> None:
    """That the host of the keeper with this folder has another base directory."""
    with contextlib.suppress(OSError):
        (folder / _ELSEWHERE).symlink_to(base)


def remove_leftovers(hosts: Path) -> None:
    """Remove what keepers have left in this folder, and where that says, which do not live any more."""
    for log in hosts.glob("*.log"):
        with contextlib.suppress(OSError):  # BlockingIOError where it lives
            _remove_if_dead(log)


def _remove_if_dead(log: Path) -> None:
    fd = os.open(log, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.read(fd, len(_first_line())) != _first_line():
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = log.with_suffix("")
        for base in (folder, folder / _ELSEWHERE):
            remove_temporary_folders(str(base))
        shutil.rmtree(folder, ignore_errors=True)
        log.unlink()
    finally:
        os.close(fd)
    found = _OF_POOL.fullmatch(folder.name)
    if found is not None and not [*log.parent.glob(f"*.{found[1]}.*.log")]:
        shutil.rmtree(words.common_folder(found[1]), ignore_errors=True)


def remove_temporary_folders(base: str) -> None:
    """What a toolkit that was killed has left outside of its base directory."""
    with contextlib.suppress(OSError):
        for folder in Path(Layout(base).temporary_folders).read_text(encoding="utf-8").splitlines():
            shutil.rmtree(folder, ignore_errors=True)


def _first_line() -> bytes:
    return f"a keeper on {machine.name()}\n".encode()
