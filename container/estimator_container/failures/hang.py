"""Whether the ranks of this host still get anywhere: what they write, where they stand, what their children do.

A rank that waits in MPI burns its CPU as one that works does, so the CPU tells nothing. Where each thread of the script
stands does: `script_runner` lets the interpreter write that down when it gets a signal. A rank gets that signal only
when half the time has passed in silence.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ranks import script_runner
from ..ranks.script_runner import END_OF_SCRIPT, STACKS_SIGNAL
from ..runtime.children import descendants
from ..runtime.loop import Loop
from .kind import Kind
from .verdict import Verdict, names_of, odd_one

if TYPE_CHECKING:
    from ..ranks.server import RankServer
    from .horovod_stalls import Lasting, Stall

Signs = tuple[int, dict[int, int], dict[int, int]]
"""The size of the log, and of each rank what its process and its first thread have written, all in bytes."""

LOOKS = 6  # in the time after which ranks that do not move are stuck
CHEAP_LOOKS = 3  # of those, that leave the ranks alone
DUMP_SECONDS = 5.0  # that a rank has to write its stacks, or the half of the time between two looks
BUSY_SHARE = 0.05  # of a CPU: what the children of a rank may take and still be idle
AT_ITS_END = "  its script has ended, and it waits for the other ranks to end theirs\n"
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\n", re.MULTILINE)  # differs from rank to rank
_TICKS = os.sysconf("SC_CLK_TCK")


class HangWatch:
    """Tells once when every rank of this host has stood still for so long, and once when that is over."""

    def __init__(
        self,
        loop: Loop,
        ranks: RankServer,
        frames: str,
        folder: str,
        code: str,
        seconds: float,
        on_change: Callable[[dict[int, str] | None], None],
    ) -> None:
        """`on_change` is called with where each rank stands, and with None as soon as one moves again."""
        self._loop = loop
        self._ranks = ranks
        self._frames = frames
        self._folder = folder
        self._code = code
        self._period = seconds / LOOKS
        self._on_change = on_change
        self._looks = 0
        self._said = False
        self._signs: Signs = (0, {}, {})
        self._stalls: Lasting | None = None
        self._stacks: dict[int, str] = {}
        self._children: dict[int, float] = {}
        self._timers = [loop.after(self._period, self._look)]

    def close(self) -> None:
        """Look no more: these ranks have ended."""
        for timer in self._timers:
            timer.cancel()

    def stalled(self, stall: Stall) -> None:
        """Horovod waits for ranks: its own words and threads are no signs of life as long as that lasts."""
        from .horovod_stalls import Lasting

        self._stalls = self._stalls or Lasting()
        self._stalls.tell(stall)

    def _look(self) -> None:
        self._timers = [self._loop.after(self._period, self._look)]
        if not self._ranks.pids:
            return  # all have ended, which others know
        signs = self._signs_of_life()
        children_worked = self._children_worked()
        before, self._signs = self._signs, signs
        if children_worked or not (signs == before or self._only_horovod_moved(before, signs)):
            self._moved()
            return
        self._looks += 1
        if self._looks >= CHEAP_LOOKS:
            for pid in self._ranks.pids.values():
                self._ask_for_stacks(pid)
            self._timers.append(self._loop.after(min(DUMP_SECONDS, self._period / 2), self._compare))

    def _compare(self) -> None:
        stacks = {rank: self._stacks_of(pid) for rank, pid in self._ranks.pids.items()}
        before, self._stacks = self._stacks, stacks
        self._signs = self._signs_of_life()  # the stacks themselves are something written
        if not all(stacks.values()) or (self._looks > CHEAP_LOOKS and stacks != before):
            self._moved()
        elif self._looks >= LOOKS and not self._said:
            self._said = True
            self._on_change(stacks)
            self._signs = self._signs_of_life()  # and so is what is said of it in the log

    def _moved(self) -> None:
        self._looks = 0
        if self._said:
            self._said = False
            self._on_change(None)

    def _signs_of_life(self) -> Signs:
        """What changes when a rank starts, ends, or writes to its log, a file or another process."""
        pids = self._ranks.pids
        written = {rank: _bytes_written(str(pid)) for rank, pid in pids.items()}
        of_first_threads = {rank: _bytes_written(f"{pid}/task/{pid}") for rank, pid in pids.items()}
        return os.path.getsize(self._frames), written, of_first_threads

    def _only_horovod_moved(self, before: Signs, now: Signs) -> bool:
        """Whether Horovod waits for ranks, and nobody has written anything but what it says of that.

        Its threads, which go on to ask each other, are not those in which a script runs.
        """
        if self._stalls is None or self._stalls.stall is None or before[2] != now[2]:
            return False
        from ..logs.frames import EVENT, FrameParser
        from .horovod_stalls import left_without

        with open(self._frames, "rb") as file:
            file.seek(before[0])
            frames = FrameParser().feed(file.read(now[0] - before[0]))
        return not left_without(b"".join(frame.data for frame in frames if frame.stream != EVENT))

    def _children_worked(self) -> bool:
        """A rank may stand still because a program of its own does the work."""
        before = self._children
        below = {child for pid in self._ranks.pids.values() for child in descendants(pid)}
        self._children = {child: _cpu_seconds(child) for child in below}
        return any(
            seconds - before.get(child, 0.0) > BUSY_SHARE * self._period for child, seconds in self._children.items()
        )

    def _ask_for_stacks(self, pid: int) -> None:
        path = self._path(pid)
        if os.path.exists(path):
            os.truncate(path, 0)
            if _catches(pid, STACKS_SIGNAL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, STACKS_SIGNAL)

    def _stacks_of(self, pid: int) -> str:
        """Empty for a rank of which that is not known: it counts as one that moves."""
        if os.path.exists(self._path(pid) + END_OF_SCRIPT):
            return AT_ITS_END
        try:
            with open(self._path(pid), encoding="utf-8", errors="replace") as file:
                return self._of_the_script(file.read())
        except FileNotFoundError:
            return ""

    def _of_the_script(self, text: str) -> str:
        """Without what is the toolkit's or this host's alone, so that the same place reads the same on each rank."""
        threads = [self._of_thread(part) for part in _THREAD.split(text)]
        return "\n".join(part for part in threads if part)

    def _of_thread(self, text: str) -> str:
        lines = text.replace(f'File "{self._code}/', 'File "').splitlines(keepends=True)
        ours = (number for number, line in enumerate(lines) if f'File "{script_runner.__file__}"' in line)
        return "".join(lines[: next(ours, len(lines))]).strip("\n")

    def _path(self, pid: int) -> str:
        return os.path.join(self._folder, str(pid))


def verdict(
    hosts: Mapping[int, str],
    standing: Mapping[int, str],
    ended: Collection[int],
    seconds: float,
    stall: Stall | None = None,
) -> Verdict:
    """What to say when every rank that has not `ended` stands still for so many seconds; `hosts` says where each is.

    `stall` is what Horovod says of it, if it does.
    """
    found = _groups(standing)
    done = sorted([*ended, *(rank for rank, stack in standing.items() if stack == AT_ITS_END)])
    waiting = [rank for rank in sorted(standing) if rank not in done]
    stood = f"no rank has written anything or moved from its line for {seconds:g} s"
    detail = "\n\n".join(f"{names_of(ranks)}, the innermost call first:\n{stack}" for stack, ranks in found.items())
    if done and waiting:
        what = f"{names_of(done)} finished the script successfully while {names_of(waiting)} did not: {stood}"
        kind, culprit = Kind.EARLY_EXIT, done[0] if len(done) == 1 else None
    else:
        what, kind = f"a deadlock is suspected: {stood}", Kind.DEADLOCK
        culprit = odd_one(found.values())
        if stall is not None:
            culprit = _only_one(stall)
            what += f"; {stall.sentence()}"
        elif culprit is not None:
            what += f"; {names_of([culprit])} is at a different line from the others"
    host = hosts[culprit] if culprit is not None else None
    victims = tuple(waiting) if kind is Kind.EARLY_EXIT else ()
    return Verdict(kind, what, host, culprit, detail=detail, victims=victims)


def after_stall(found: Verdict, stall: Stall, hosts: Mapping[int, str]) -> Verdict:
    """The verdict on a rank that failed because Horovod, which waited for others, has ended the world.

    `hosts` says where each rank is.
    """
    culprit = _only_one(stall)
    what = f"Horovod has shut down after it had waited {stall.for_whom()}"
    host = hosts[culprit] if culprit is not None else None
    ended = {*found.victims, *(() if found.rank is None else (found.rank,))}
    victims = tuple(sorted(ended.difference(stall.missing)))
    return replace(found, kind=Kind.DEADLOCK, message=what, host=host, rank=culprit, exit_code=None, victims=victims)


def _only_one(stall: Stall) -> int | None:
    return next(iter(stall.missing)) if len(stall.missing) == 1 else None


def _groups(stacks: Mapping[int, str]) -> dict[str, list[int]]:
    """Where ranks stand -> the ranks that stand there, sorted."""
    found: dict[str, list[int]] = {}
    for rank in sorted(stacks):
        found.setdefault(stacks[rank], []).append(rank)
    return found


def _bytes_written(place: str) -> int:
    """What a process or a thread has written, in bytes; `wchar` of `/proc/PID/io` (proc(5))."""
    try:
        with open(f"/proc/{place}/io", "rb") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(b"wchar:"))
    except (OSError, StopIteration):
        return 0


def _cpu_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _catches(pid: int, signum: int) -> bool:
    """Whether a process has a handler for a signal; `SigCgt` of `/proc/PID/status`, bit 0 for signal 1 (proc(5))."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            caught = next(int(line.split()[1], 16) for line in file if line.startswith(b"SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(caught >> (signum - 1) & 1)
