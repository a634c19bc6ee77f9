"""What a process does while its rank waits for input: a thread looks at the stacks a hundred times a second.

Every second each process writes what it has seen so far as one line to its standard error, where the doctor finds it.
Children that the rank forks, such as the workers of a DataLoader, do the same about themselves.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from resource import RUSAGE_THREAD, getrusage
from time import monotonic, process_time, thread_time
from typing import Any

from ..page import CHECKPOINT, INPUT
from . import doing
from .applied import SWITCH_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..step_account import StepAccount
    from .from_python import Making

MARK = "estimator-doctor: "
"""How such a line begins."""
LOOK_SECONDS, TELL_SECONDS = 0.01, 1.0
MOST_PLACES = 5
MODULES = ("torch", "tensorflow", "keras", "horovod")
"""Of which it is told whether the script has imported them."""
loader: dict[str, Any] = {}
"""How the script loads, as the hooks have seen it: by what, and with how many workers."""
making: Making | None = None
"""What the script makes in Python for `tf.data`; None without TensorFlow."""
_opened = 0


def saw_loader(kind: str, **facts: object) -> bool:
    """A script loads by this. What wraps a loader that is known tells nothing new, and neither do iterators.

    Whether it was not known.
    """
    is_new = loader.get("by") != kind
    if facts or kind == "tf.data" or not loader:
        loader.update({"by": kind, **facts})
    return is_new


class InputWatch:
    """Looks at this process, and writes down what it sees."""

    def __init__(self, account: StepAccount) -> None:
        self._account = account
        self._is_child = False
        self._counts: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._looks = 0
        self._threads = 0
        """Of the looks at input: how many threads did something, all together."""
        self._cpu = {INPUT: 0.0, CHECKPOINT: 0.0}
        self._process_cpu = self._wall = 0.0
        self._waits = 0
        """How often the thread that waits for input gave its CPU away meanwhile, to wait for something."""
        self._late = [0, 0.0]
        """Of the looks while the rank computes: how many, and how much later than planned all together."""
        self._before: tuple[int, float, float, float, int] | None = None
        self._began: tuple[float, float, int, int] | None = None
        """When it was first looked, by the clock and by the CPU; and what had been opened and read by then."""

    def begin(self) -> None:
        """From now on, as long as the process lives. The stacks are to be seen where they are, not when all wait."""
        sys.setswitchinterval(SWITCH_SECONDS)
        sys.addaudithook(_count_opened)
        self._measure_cpu()
        os.register_at_fork(after_in_child=self._begin_in_child)
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._run, name="estimator-doctor", daemon=True).start()

    def _begin_in_child(self) -> None:
        self._is_child = True
        self._counts, self._places, self._looks, self._threads, self._began = Counter(), Counter(), 0, 0, None
        self._start()

    def _measure_cpu(self) -> None:
        """Look at the clocks of the CPU wherever the account's thread begins and ends to wait for something."""
        account, begin, end = self._account, self._account.begin, self._account.end

        def begin_and_look(kind: int) -> None:
            begin(kind)
            if self._before is None and account.spends_on == kind and account.is_this_thread():
                self._before = kind, thread_time(), process_time(), monotonic(), _waits()

        def look_and_end() -> None:
            end()
            before = self._before
            if before is not None and account.spends_on is None and account.is_this_thread():
                self._before = None
                if account.has_begun and before[0] in self._cpu:
                    self._cpu[before[0]] += thread_time() - before[1]
                    if before[0] == INPUT:
                        self._process_cpu += process_time() - before[2]
                        self._wall += monotonic() - before[3]
                        self._waits += _waits() - before[4]

        vars(account).update(begin=begin_and_look, end=look_and_end)

    def _run(self) -> None:
        told, wait = monotonic(), threading.Event()
        while True:
            planned = monotonic() + LOOK_SECONDS
            wait.wait(LOOK_SECONDS)
            self._look(monotonic() - planned)
            now = monotonic()
            if now - told >= TELL_SECONDS and self._began is not None:
                told = now
                self._tell()

    def _look(self, late: float) -> None:
        if not self._is_child and not self._account.has_begun:
            return
        if self._began is None:
            self._began = monotonic(), process_time(), _opened, _bytes_read()
        if not self._is_child and self._account.spends_on != INPUT:
            if self._account.spends_on is None:
                self._late = [self._late[0] + 1, self._late[1] + late]
            return
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        main = frames.pop(threading.main_thread().ident or 0 if self._is_child else self._account.thread, None)
        seen, others = doing.doing(main), [doing.doing(frame) for frame in frames.values()]
        busy = [other for other in others if other.what != doing.WAITING and other.place]
        self._looks += 1
        self._threads += len(busy) + (seen.what != doing.WAITING)
        if seen.what == doing.WAITING and busy and not self._is_child:
            seen = busy[self._looks % len(busy)]  # a thread that loads for it
        self._counts[seen.what] += 1
        if seen.what != doing.WAITING and seen.place:
            self._places[f"{seen.what} {seen.place}"] += 1

    def _tell(self) -> None:
        began, cpu, opened, read = self._began or (monotonic(), process_time(), 0, 0)
        told = {
            "rank": os.environ.get("RANK"),
            "pid": os.getpid(),
            "child": self._is_child,
            "looks": self._looks,
            "doing": dict(self._counts),
            "places": dict(self._places.most_common(MOST_PLACES)),
            "threads": self._threads,
            "seconds": monotonic() - began,
            "cpu": process_time() - cpu,
            "input_seconds": self._wall,
            "input_cpu": self._cpu[INPUT],
            "input_process_cpu": self._process_cpu,
            "input_waits": self._waits,
            "late": self._late[1] / max(1, self._late[0]),
            "checkpoint_cpu": self._cpu[CHECKPOINT],
            "opened": _opened - opened,
            "read": _bytes_read() - read,
            "loader": loader,
            "making": vars(making) if making is not None else {},
            "modules": [name for name in MODULES if name in sys.modules],
            "cpus": len(os.sched_getaffinity(0)),
        }
        try:
            os.write(2, f"{MARK}{json.dumps(told)}\n".encode())
        except OSError:  # closed: nobody wants to know
            return


def _count_opened(event: str, arguments: tuple[Any, ...]) -> None:
    global _opened
    if event == "open":
        _opened += 1


def _waits() -> int:
    """How often the thread that calls has given its CPU away because it waited for something."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw


def _bytes_read() -> int:
    """What the process has read from files so far; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/io", "rb") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
