"""Writes down where the Python threads of a script are, whenever the toolkit asks.

`faulthandler` does so at a signal, even while native code holds the interpreter's lock; but it does not take that
lock. What it reads of a thread that goes on meanwhile may be gone as it reads, and the process dies of SIGSEGV: tried
with Python 3.10 to 3.13, beside threads that call deeply, after 1 to 320 looks. So it tells of the thread alone that
takes the signal, which is mostly the first. A thread of our own tells of all, and while it looks no other can go on. It
is there as soon as there are others, and no sooner: Python 3.12 warns at a fork that there are any.

Nothing is imported that the interpreter does not have loaded or built in, because every script pays for it.
"""

from __future__ import annotations

import _thread
import faulthandler
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # without the enumerations around it

STACKS_SIGNAL = signal.SIGRTMIN + 11  # the C library takes the first two, and scripts hardly take any
ASKED, THREADS = ".ask", ".threads"  # what follows the pid in the names of the FIFO, and of the file with the answer
MOST_THREADS, MOST_CALLS = 100, 100  # the newest threads, and the innermost calls of each, as `faulthandler` has it
_start = _thread.start_new_thread  # what stands there later may start none, as that of gevent
_STARTS = (  # what starts a thread; "joinable" is of Python 3.13
    ("_thread", "start_new_thread"),
    ("_thread", "start_new"),
    ("_thread", "start_joinable_thread"),
    ("threading", "_start_new_thread"),
    ("threading", "_start_joinable_thread"),
)


class OwnStacks:
    """Of the process that makes it, in its first thread."""

    have_threads = frozenset({"horovod", "jax", "keras", "mpi4py", "numpy", "tensorflow", "torch"})
    """Modules whose native code has threads of its own, which may take the signal, or call Python."""

    def __init__(self, folder: str) -> None:
        """Answer in that folder from now on."""
        self._pid = os.getpid()
        self._first = _thread.get_ident()
        self._is_answering = False
        self.path = os.path.join(folder, str(self._pid))
        """What `faulthandler` writes; the names of what else is there begin with it."""
        self.besides: list[Callable[[], None]] = []
        """What our thread calls, too, when it has been asked; what they raise is not shown."""
        fd = os.open(self.path + ".new", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        faulthandler.register(STACKS_SIGNAL, file=fd, all_threads=False)
        os.rename(self.path + ".new", self.path)  # whoever finds it may ask
        if _thread._count():
            self.answer()  # what runs at the start of every interpreter here has begun one
        else:
            _replace_starts(self._answering_before)

    def _answering_before(self, start: Callable[..., object]) -> Callable[..., object]:
        def start_thread(*args: object, **kwargs: object) -> object:
            _replace_starts(lambda start: getattr(start, "replaced", start))
            self.answer()
            return start(*args, **kwargs)

        start_thread.replaced = start  # type: ignore[attr-defined]
        return start_thread

    def answer(self) -> None:
        """From now on there may be several threads."""
        if self._is_answering or os.getpid() != self._pid:  # nobody asks the script's children
            return
        self._is_answering = True
        # The script's signals are for its own threads: one that they all block would end the process in ours.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            os.mkfifo(self.path + ASKED, 0o600)
            os.close(os.open(self.path + THREADS, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            _start(self._answer, ())
        except (OSError, RuntimeError):  # no file or thread is to be had
            _remove(self.path)
            _remove(self.path + THREADS)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _answer(self) -> None:
        while True:
            try:
                fd = os.open(self.path + ASKED, os.O_RDWR | os.O_CLOEXEC)  # for both, so that there is no end of it
            except OSError:
                _remove(self.path + THREADS)
                return
            own = os.fstat(fd)
            while _is(fd, own) and os.read(fd, 1 << 16):
                for write_down in (self._write_down, *self.besides):
                    try:
                        write_down()
                    except Exception:  # of a version of Python or PyTorch that is unlike those we know
                        continue

    def _write_down(self) -> None:
        """Leave no file where they cannot be told: with the first thread alone, a rank might seem to stand still."""
        try:
            if not _may_look():
                raise OSError
            told = "\n".join(_calls_of_all(self._first))
            fd = os.open(self.path + THREADS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, told.encode("utf-8", "backslashreplace"))
            finally:
                os.close(fd)
        except Exception:
            _remove(self.path + THREADS)
            raise


def _may_look() -> bool:
    """Whether no thread goes on while another one looks: those without a lock do, and of other interpreters."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    interpreters = sys.modules.get("_interpreters") or sys.modules.get("_xxsubinterpreters")
    return has_lock and (interpreters is None or len(interpreters.list_all()) == 1)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _is(fd: int, file: os.stat_result) -> bool:
    """A script may close what it has not opened, and then the number stands for something of its own."""
    try:
        return os.path.samestat(os.fstat(fd), file)
    except OSError:
        return False


def _replace_starts(by: Callable[[Callable[..., object]], Callable[..., object]]) -> None:
    for module_name, name in _STARTS:
        module = sys.modules.get(module_name)
        start = getattr(module, name, None)
        if module is not None and start is not None:
            setattr(module, name, by(start))


def _calls_of_all(first: int) -> list[str]:
    """Each thread as `faulthandler` writes it, with the thread `first` before all others and without this one."""
    frames = _frames()
    del frames[_thread.get_ident()]
    threads = sorted(frames, key=lambda thread: thread != first)[:MOST_THREADS]
    found = {thread: _calls(frames.pop(thread)) for thread in threads}
    frames.clear()
    return [
        f"Thread 0x{thread:016x} (most recent call first):\n"
        + "".join(f'  File "{file}", line {line} in {function}\n' for file, line, function in calls)
        for thread, calls in found.items()
    ]


def _frames() -> dict[int, FrameType]:
    """Without the collector: in Python 3.11 it may run as the call makes frames, with a lock that threads start by.

    What it collects may let another thread go on, which waits for that lock, and then all wait for ever
    (python/cpython issue 106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _calls(frame: FrameType | None) -> list[tuple[str, int, str]]:
    """Quickly: as long as we hold a frame, what its function leaves behind is not freed, or is freed in our thread."""
    calls: list[tuple[str, int, str]] = []
    while frame is not None and len(calls) < MOST_CALLS:
        calls.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return calls
