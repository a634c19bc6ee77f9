"""The program that has a host on an executor's machine: it unpacks our software, runs the keeper, and cleans up.

The task that starts it gives this very text to Python there, where nothing of ours is. It is in a session of its own:
so it goes on when Spark kills the task, with whatever signal, and nothing is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
from typing import Any

GRACE_SECONDS = 10.0
"""That the host may go on after its task has ended, as long as the executor is there: Spark tells the driver of that,
which stops the job, and whose verdict is not that the host is lost."""
END_SECONDS = 30.0
"""That the keeper may take to end its host, before both are killed."""
READY = b"ready\n"
"""What it writes to standard output when the host can begin; else that is why it cannot."""
BEGIN = b"begin "
"""How the line begins that it is told then; it goes on with the addresses of GPUs, if the host has some of Spark's."""


def main() -> int:
    """Have the host that standard input describes, which is closed when the task ends. Returns the exit status."""
    told = sys.stdin.buffer.readline()
    if not told.endswith(b"\n"):
        return 0  # the task was killed before it could say what is wanted
    given = json.loads(told)
    packed = sys.stdin.buffer.read(given["size"])
    if len(packed) < given["size"]:
        return 0
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, lambda *_: None)  # the task, the executor and the keeper say when to end
    common, own = given["keeper"]["common"], given["own"]
    lock = None
    try:
        place = common
        try:
            lock = enter(common)
            unpack(packed, common, given["keeper"]["name"])
            place = own
            os.mkdir(own, 0o700)  # noqa: PTH102 - this starts for each host, and needs nothing of pathlib
        except OSError as error:
            say(f"{place}: {error.strerror or error}\n".encode(errors="replace"))
            return 1
        say(READY)
        begin = sys.stdin.buffer.readline()
        if not begin.startswith(BEGIN) or not begin.endswith(b"\n"):
            return 0
        if gpus := begin.removeprefix(BEGIN).strip():
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus.decode()
        return keep(given, f"{common}/software")
    finally:
        shutil.rmtree(own, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(f"{own}.log")  # noqa: PTH108
        if lock is not None:
            leave(common, lock)


def say(words: bytes) -> None:
    """To the task, if it is still there."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(words)
        sys.stdout.buffer.flush()


def enter(common: str) -> int:
    """Share the folder with the job's other hosts on this machine; it is made if it is not there.

    Returns the descriptor of the lock on it. Raises OSError.
    """
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(common, 0o700)  # noqa: PTH102
        try:
            folder = os.open(common, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # the last of the others has just left
            continue
        about = os.fstat(folder)
        if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
            raise PermissionError("it is not this user's alone")
        fcntl.flock(folder, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(common).st_ino == about.st_ino:  # noqa: PTH116
                return folder
        os.close(folder)


def leave(common: str, folder: int) -> None:
    """Remove the shared folder, if nobody else is there."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    shutil.rmtree(common, ignore_errors=True)


def unpack(packed: bytes, common: str, name: str) -> None:
    """Put both packages into the shared folder; whoever is first does it. Raises OSError."""
    software, draft = f"{common}/software", f"{common}/{name}"
    if os.path.isdir(software):  # noqa: PTH112
        return
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(draft)
    try:
        os.rename(draft, software)  # noqa: PTH104
    except OSError:
        shutil.rmtree(draft)


def keep(given: dict[str, Any], software: str) -> int:
    """Run the keeper until it ends, or until the task has ended or the executor. Returns its exit status."""
    sys.path.insert(0, software)
    from estimator_container.runtime.children import become_subreaper, kill_descendants

    become_subreaper()
    program = [sys.executable, "-I", "-S", f"{software}/estimator_sdk/backends/ssh/on_host", given["own"]]
    try:
        keeper = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=sys.stderr, cwd="/")
        assert keeper.stdin is not None
        with contextlib.suppress(BrokenPipeError), keeper.stdin as pipe:
            pipe.write(json.dumps(given["keeper"]).encode())
        wait(keeper.pid, given["executor"])
        keeper.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return keeper.wait(END_SECONDS)
        return 1
    finally:
        kill_descendants()


def wait(keeper: int, executor: int) -> None:
    """Wait until the keeper is to end, or has ended; `executor` is the process that ends with the executor."""
    ended = os.pidfd_open(keeper)
    looks = select.poll()
    looks.register(ended, select.POLLIN)
    looks.register(sys.stdin.fileno(), 0)  # of its other end's closing one is told without being asked
    looks.poll()
    looks.unregister(sys.stdin.fileno())
    try:
        looks.register(os.pidfd_open(executor), select.POLLIN)
    except ProcessLookupError:
        return
    looks.poll(GRACE_SECONDS * 1000)


if __name__ == "__main__":
    sys.exit(main())
