"""Where ranks are: what they write down themselves, PyTorch's flight recorder, and `py-spy` where it is there.

`py-spy` knows the frames of native code too. It has to stop a rank for a moment, so it is asked once, at the end of a
silence.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from typing import TYPE_CHECKING

from ...ranks.flight_recorder import ANSWER, FACTS
from ...ranks.own_stacks import ASKED, STACKS_SIGNAL, THREADS
from ...ranks.script_runner import END_OF_SCRIPT
from ...runtime.children import signal_group
from . import evidence, waiting
from .standing import AT_ITS_END
from .waiting import Stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ...runtime.children import Children
    from ...runtime.loop import Loop

DUMP_SECONDS = 5.0  # that a rank has to write its stacks, or the half of the time between two looks; and `py-spy` too
MOST_SAID = 1 << 16  # characters of what a flight recorder says
MOST_NATIVE = 8192  # characters of what `py-spy` says of a rank: a framework may have a hundred threads
_OURS = re.compile(r"^.*/ranks/(?:script_runner|lone_script)\.py:(?:.*\n)*?(?=\n|\Z)", re.MULTILINE)  # and outwards
_OUR_THREAD = "/ranks/own_stacks.py:"
_THREAD = re.compile(r"^Thread (\S+) ", re.MULTILINE)


class Dumps:
    """Asks the ranks of a host where they are, and reads their answers."""

    def __init__(self, loop: Loop, children: Children, folder: str, code: str, path: str) -> None:
        """`folder` has the answers, `code` the scripts, and `path` is the PATH of ranks, which may have `py-spy`."""
        self._loop = loop
        self._folder = folder
        self._code = code
        self._children = children
        self._py_spy = shutil.which("py-spy", path=path)

    def ask(self, pid: int) -> None:
        """Have a rank write down where its Python threads are, if it has said that it can."""
        path = self._path(pid)
        if os.path.exists(path):
            if os.path.exists(path + ASKED):
                self._ask_its_thread(path)
            with contextlib.suppress(FileNotFoundError):  # its script ends at this moment
                os.truncate(path, 0)
            if evidence.catches(pid, STACKS_SIGNAL) and evidence.has_open(pid, path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, STACKS_SIGNAL)

    def _ask_its_thread(self, path: str) -> None:
        with contextlib.suppress(OSError):  # it could not tell, the last time
            os.truncate(path + THREADS, 0)
        with contextlib.suppress(OSError):  # it is gone, or has not read what it was asked before
            fd = os.open(path + ASKED, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(fd, b"?")
            finally:
                os.close(fd)

    def ask_for_native(self, pids: Collection[int], done: Callable[[], None]) -> None:
        """Have `py-spy` write down where all their threads are; call `done` when it has, or takes too long."""
        running: set[int] = set()

        def ended(py_spy: int) -> None:
            if py_spy in running:
                running.remove(py_spy)
                if not running:
                    timer.cancel()
                    done()

        def late() -> None:
            for py_spy in running & self._children.pids:
                signal_group(py_spy, signal.SIGKILL)  # the rank that it has stopped goes on then
            running.clear()
            done()

        running.update(py_spy for py_spy in (self._start_py_spy(pid, ended) for pid in pids) if py_spy)
        if running:
            timer = self._loop.after(DUMP_SECONDS, late)
        else:
            done()

    def _start_py_spy(self, pid: int, ended: Callable[[int], None]) -> int:
        """Returns the pid of `py-spy`, or 0 without one."""
        if self._py_spy is None:
            return 0
        try:
            fd = os.open(f"{self._path(pid)}.native", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                argv = [self._py_spy, "dump", "--native", "--pid", str(pid)]
                started = self._children.start(argv, {}, lambda code: ended(started), fd, fd)
            finally:
                os.close(fd)
        except OSError:
            return 0  # it is not for this machine, or the disk is full
        return started

    def stacks(self, pid: int) -> Stacks:
        """The answer of a rank; without a text where nothing is known: such a rank counts as one that moves."""
        path = self._path(pid)
        if os.path.exists(path + END_OF_SCRIPT):
            return Stacks(AT_ITS_END)
        if os.path.exists(path + ASKED) and not os.path.exists(path + THREADS):
            return Stacks("")
        # Its thread cannot answer while native code holds the interpreter's lock; then no other moves either.
        return waiting.parse(_read(path + THREADS) or _read(path), self._code)

    def collectives(self, pid: int) -> Sequence[Mapping[str, str]]:
        """The last collective of each process group of PyTorch, where its flight recorder is on."""
        try:
            with open(self._path(pid) + ANSWER, encoding="utf-8") as file:
                said = json.loads(file.read(MOST_SAID))
                return [{name: str(each[name]) for name in FACTS} for each in said]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return ()  # a script may write there too

    def native(self, pid: int) -> str:
        """What `py-spy` has said of its threads, the one that runs the script first; empty where it cannot look."""
        said = _read(f"{self._path(pid)}.native")
        starts = [found.start() for found in _THREAD.finditer(said)]
        threads = [said[start:end] for start, end in zip(starts, [*starts[1:], len(said)])]
        threads = [_OURS.sub("", thread) for thread in threads if _OUR_THREAD not in thread]
        threads.sort(key=lambda thread: not thread.startswith(f"Thread {pid} "))
        return "".join(threads)[:MOST_NATIVE].rstrip("\n")

    def _path(self, pid: int) -> str:
        return os.path.join(self._folder, str(pid))


def _read(path: str) -> str:
    """Empty where there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
