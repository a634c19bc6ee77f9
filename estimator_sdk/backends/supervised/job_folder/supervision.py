"""Which process supervises a job: proven by what the kernel says of it, for a record may name any process.

A folder can be copied with its record, or come from somebody else, and a number is given to another process in time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ....errors import BackendError
from ....values.home import JobFolder
from .record import Process

_SCRIPT = b"/estimator_sdk/backends/supervised"
"""What `client.MAIN` ends with, in whatever environment the supervisor was started."""
_BECOMING_SECONDS = 5.0  # that a process may take to become the program that it is to run, on a machine under load
_LOOK_SECONDS = 0.001


def is_supervisor(process: Process, folder: JobFolder) -> bool:
    """Whether the process runs, under our user or the folder's owner, and was started as the folder's supervisor."""
    try:
        about = Path(f"/proc/{process.pid}")
        command = _command_of(process)
        users = {int(line.split()[1]) for line in (about / "status").read_bytes().splitlines() if line[:4] == b"Uid:"}
        return (
            users <= {os.geteuid(), folder.path.stat().st_uid}
            and _supervises(command, folder.path)
            and process.is_alive()  # last: so what was read before was read of this very process
        )
    except OSError:
        return False


def supervisors(folder: JobFolder) -> Iterator[Process]:
    """All processes that were started as the supervisor of a folder with this path.

    One may be that of an earlier job, whose folder was removed: it knows that, and is about to end.
    """
    for about in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if _supervises((about / "cmdline").read_bytes().split(b"\0"), folder.path):
                process = Process.from_pid(int(about.name))
                if process is not None and is_supervisor(process, folder):
                    yield process


def signal_supervisor(process: Process, folder: JobFolder, signum: signal.Signals) -> None:
    """Send a signal to the process if it is the folder's supervisor, and to no other that might get its number.

    Raises BackendError where it is another user's.
    """
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # a Python or a kernel without it: what is left is a moment
        fd = -1
    try:
        if not is_supervisor(process, folder):
            return
        if fd >= 0:
            signal.pidfd_send_signal(fd, signum)
        else:
            os.kill(process.pid, signum)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        what = f"the job {folder.name} is run by another user of this machine"
        raise BackendError(f"{what}, so you may not stop it; ask its owner") from None
    finally:
        if fd >= 0:
            os.close(fd)


def _command_of(process: Process) -> list[bytes]:
    """Its words; those of a process that has just been started, as soon as the kernel knows them. Raises OSError.

    A process has none for a moment while it becomes another program, when whoever started it has been told already
    that it is one; nor when it is about to be gone.
    """
    deadline = time.monotonic() + _BECOMING_SECONDS
    while True:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        if words or not process.is_alive() or time.monotonic() > deadline:
            return words.split(b"\0")
        process.wait(_LOOK_SECONDS)


def _supervises(command: list[bytes], folder: Path) -> bool:
    """Whether the words are those of `detached.bare` for a supervisor of this folder, by whatever name of it."""
    if len(command) < 5 or not command[3].endswith(_SCRIPT):
        return False
    return command[4] == os.fsencode(folder) or folder.samefile(os.fsdecode(command[4]))
