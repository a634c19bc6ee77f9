"""Starting, reaping and ending processes, as an init does it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence

from .loop import Loop

OnExit = Callable[[int], None]
"""Called with the exit code of a child, or minus the number of the signal that ended it."""

ENDING_SECONDS = 0.5  # that a process may take from the closing of its descriptors to its end
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PF_EXITING = 0x4  # linux/sched.h
# Signals that the toolkit handles or that Python ignores: a child starts with the defaults.
_DEFAULT_IN_CHILDREN = [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP]


def become_subreaper() -> None:
    """Let orphans of this process's descendants become its own children, as those of PID 1 do."""
    if os.getpid() == 1 or not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdout: int | None = None,
    stderr: int | None = None,
    blocked: Collection[int] = (),
    stdin: int | None = None,
) -> int:
    """Start a program in a process group of its own, and return its pid.

    It begins with those signals blocked, and without `stdin` it has no standard input.

    Raises OSError when the program cannot be started.
    """
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = []
    if stdin is None:
        actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
    for fd, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        if fd is not None:
            actions.append((os.POSIX_SPAWN_DUP2, fd, target))
    return os.posix_spawnp(
        argv[0],
        list(argv),
        dict(env),
        file_actions=actions,
        setpgroup=0,
        setsigmask=list(blocked),
        setsigdef=_DEFAULT_IN_CHILDREN,
    )


class Children:
    """The processes below this one: those it started, and the orphans that it adopts."""

    def __init__(self, loop: Loop) -> None:
        self._on_exit: dict[int, OnExit] = {}
        loop.on_signal(signal.SIGCHLD, self.reap)

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        on_exit: OnExit,
        stdout: int | None = None,
        stderr: int | None = None,
        blocked: Collection[int] = (),
        stdin: int | None = None,
    ) -> int:
        """`spawn` a program and call `on_exit` once it has ended. Returns its pid."""
        pid = spawn(argv, env, stdout, stderr, blocked, stdin)
        self._on_exit[pid] = on_exit
        return pid

    @property
    def pids(self) -> set[int]:
        """Those that were started here and have not ended."""
        return set(self._on_exit)

    def reap(self) -> None:
        """Collect every child that has ended, adopted ones included."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            on_exit = self._on_exit.pop(pid, None)
            if on_exit is not None:
                on_exit(exit_code(status))

    def kill_all_but(self, spare: Collection[int]) -> bool:
        """Kill every process below this one but those in `spare` and what is below them, and tell nobody of it.

        None of them is waited for. Returns whether none was left.
        """
        self._on_exit = {pid: on_exit for pid, on_exit in self._on_exit.items() if pid in spare}
        found = descendants(spare=spare)
        for pid in found:
            _kill(pid)
        return not found

    def reap_ending(self) -> None:
        """`reap`, with those that are about to end.

        A process closes its connections before its parent is told of its end, so whoever was connected to a child
        may know of it first. News of such a one is news after this.
        """
        for pid in self._on_exit:
            if _is_ending(pid):
                _wait_briefly(pid)
        self.reap()


def exit_code(status: int) -> int:
    """A wait status as an exit code, or as minus the number of the signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def signal_group(pgid: int, signum: int) -> None:
    """Signal a process group; nothing happens if it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signum)


def descendants(root: int | None = None, spare: Collection[int] = ()) -> list[int]:
    """The pids of all processes below `root` (this process by default), parents first.

    Those in `spare` are left out, with all that is below them. Zombies are not: they have still to be collected, and a
    process of which only the first thread has ended looks like one.
    """
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(name)):
            children.setdefault(int(stat[1]), []).append(int(name))
    found, queue = [], [os.getpid() if root is None else root]
    while queue:
        below = [pid for pid in children.get(queue.pop(), []) if pid not in spare]
        found += below
        queue += below
    return found


def _is_ending(pid: int) -> bool:
    return bool(int((_stat(pid) or [b"0"] * 7)[6]) & _PF_EXITING)


def _stat(pid: int | str) -> list[bytes]:
    """The fields of a process from its state on, as proc(5) has them; none when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may itself hold spaces and parentheses.
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _wait_briefly(pid: int) -> None:
    with contextlib.suppress(OSError):  # an old kernel cannot tell of one process only
        fd = os.pidfd_open(pid)
        try:
            select.select([fd], [], [], ENDING_SECONDS)
        finally:
            os.close(fd)


def kill_descendants_but(spare: Collection[int]) -> None:
    """As `kill_descendants`, for a process with children that go on, and with them what is below those."""
    if not spare:
        kill_descendants()
        return
    # A look at /proc may miss a process that changes its parent meanwhile. But while one lives, this process has a
    # child to collect, dead or alive, that was there when the look began, and no look misses that one.
    while found := descendants(spare=spare):
        for pid in found:
            _kill(pid)
        for pid in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def kill_descendants() -> None:
    """End every process below this one, whatever it did to get away, and collect it.

    A process that forks between two looks is found in the next; the orphans come to this process
    because it is PID 1 or a subreaper.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            # Mostly all have ended by themselves, and without a child there is nobody below: no need to read
            # of every process of the machine whose child it is.
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
            for pid in descendants():
                _kill(pid)
            # The look may have missed somebody, but as long as one lives this process has a child. The kernel tells
            # when one has ended, so nothing is polled.
            os.waitpid(-1, 0)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
