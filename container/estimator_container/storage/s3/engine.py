"""One event loop in one thread per process, on which all transfers of all s3 stores run.

A loop rather than threads that block: a transfer can be cancelled while it waits for the network, so the caller
answers signals, the first error ends the others at once, and nothing is left when the process exits.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Collection, Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any, Callable, Generic, TypeVar

from ..errors import StorageError
from ..parallel import ANSWER_SECONDS

T = TypeVar("T")

_DISK_THREADS = 4
_COMPUTING_THREADS = 4
# The scheduler lets a thread that wakes wait for one that computes, up to a slice of milliseconds, unless that one has
# less weight; then the network's threads, and a server on this machine, bring the next bytes meanwhile.
_NICENESS = 5
# After a cancellation the client's own threads still look, once, at what was cancelled. Nothing tells when they have,
# and if the interpreter is gone by then they complain on standard error.
_LINGER_SECONDS = 0.2
# One that is still in Python's code when the interpreter ends, as after it has handed over a result, is ended there,
# which aborts the process though all its work is done.
_REST_SECONDS = 10.0  # that they have until then; some milliseconds on an idle machine
_THREADS = "tokio"  # what their names begin with
_END_SECONDS = 5.0  # to close files and connections; far more than that takes

_engine: Engine | None = None
_inherited = False
"""Whether this process was forked from one that had an engine: the client's threads are not here, and it would wait
for them for ever."""
_lock = threading.Lock()


class Engine:
    """Use `engine()`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lingers_until = 0.0
        self._disk = ThreadPoolExecutor(_DISK_THREADS, thread_name_prefix="store-disk")
        self._computing = ThreadPoolExecutor(_COMPUTING_THREADS, thread_name_prefix="store-hash", initializer=_give_way)
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an exception in the caller, such as Ctrl-C, cancels the work."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Running[T]:
        """Begin, and return at once."""
        if os.getpid() != self._process or not self._thread.is_alive():
            work.close()
            raise StorageError(
                "this store belongs to another process, or this process is ending: open a store where it is used"
            )
        return Running(self, work)

    async def on_disk(self, work: Callable[..., T], *arguments: object) -> T:
        """Run what waits for a disk beside the loop.

        A cancellation waits for it too: it may hold a file that the caller closes next, whose number another file gets.
        """
        return await self._on(self._disk, work, *arguments)

    async def computing(self, work: Callable[..., T], *arguments: object) -> T:
        """Run what computes for long beside the loop, as `on_disk` does, but after all that waits for a processor."""
        return await self._on(self._computing, work, *arguments)

    async def _on(self, threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
        running = self.loop.run_in_executor(threads, work, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def cancel(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        """Cancel what has not ended yet, and wait until all have."""
        for task in tasks:
            if task.cancel():
                self.note_cancellation()
        await asyncio.gather(*tasks, return_exceptions=True)

    def note_cancellation(self) -> None:
        """A transfer was cancelled: `stop` waits until the client's own threads have noticed."""
        self._lingers_until = time.monotonic() + _LINGER_SECONDS

    def stop(self) -> None:
        """Cancel all transfers and end the thread; nothing happens in a forked process."""
        if os.getpid() != self._process or not self._thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._cancel)
        self._thread.join(_END_SECONDS)
        self._disk.shutdown(wait=False)
        self._computing.shutdown(wait=False)
        time.sleep(max(0.0, self._lingers_until - time.monotonic()))
        _wait_until_the_client_rests()

    def _cancel(self) -> None:
        ending = self.loop.create_task(self.cancel(asyncio.all_tasks(self.loop)))
        ending.add_done_callback(lambda _: self.loop.stop())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class Running(Generic[T]):
    """Work that has begun on the engine."""

    def __init__(self, engine: Engine, work: Coroutine[Any, Any, T]) -> None:
        self._engine = engine
        self._over = threading.Event()
        self._future = asyncio.run_coroutine_threadsafe(self._tracked(work), engine.loop)

    async def _tracked(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        finally:
            self._over.set()

    @property
    def ended(self) -> bool:
        """Whether the transfer has ended, with a result or without."""
        return self._future.done()

    def on_end(self, call: Callable[[], object]) -> None:
        """Call back when the transfer has ended, from any thread."""
        self._future.add_done_callback(lambda _: call())

    def result(self) -> T:
        """Wait for the end."""
        try:
            while not wait([self._future], ANSWER_SECONDS).done:
                pass
            return self._future.result()
        except CancelledError:
            raise StorageError(
                "the process is ending, so its transfers were cancelled: nothing is left half done"
            ) from None
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """When this returns, files and connections of the work are closed."""
        if not self._future.done():
            self._engine.note_cancellation()
            self._future.cancel()
            self._over.wait(_END_SECONDS)


def engine() -> Engine:
    """The engine of this process, started when it is first asked for."""
    global _engine
    with _lock:
        if _inherited:
            raise StorageError(
                "an s3 store was open when this process was forked, which its client does not survive: start the "
                "process with 'spawn', or open the first store after the fork"
            )
        if _engine is None:
            _engine = Engine()
            atexit.register(_engine.stop)
        return _engine


def _wait_until_the_client_rests() -> None:
    """Until none of its threads runs, or wants to.

    One that waits for the interpreter sleeps too; but it is woken each time that this thread gives the interpreter
    away, even where it gets no CPU before this one takes it again.
    """
    deadline = time.monotonic() + _REST_SECONDS
    before: list[str] | None = None
    while time.monotonic() < deadline:
        time.sleep(0.001)
        sleeps = _sleeps_of_the_client()
        if sleeps is not None and sleeps == before:
            return
        before = sleeps


def _sleeps_of_the_client() -> list[str] | None:
    """How often each of its threads has gone to sleep; None while one of them is awake."""
    found = []
    for thread in sorted(os.listdir("/proc/self/task")) if sys.platform == "linux" else ():
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/status", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file)
            if status["Name"].strip().startswith(_THREADS):
                if status["State"].split()[0] != "S":
                    return None
                found.append(status.get("voluntary_ctxt_switches", ""))  # which gVisor does not tell
    return found


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere this would be said of the whole process
        os.nice(_NICENESS)


def _forget() -> None:
    """In a forked child the thread is gone, and the lock may be held by nobody."""
    global _engine, _inherited, _lock
    _inherited = _inherited or _engine is not None
    _engine = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)
