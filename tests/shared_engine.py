"""What takes long to start, and what all test processes of a run share: by a variable that names its folder."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest

Made = TypeVar("Made")
END_SECONDS = 60
"""That an interrupted command has to end what it has started: pytest interrupts its workers only after 5 s."""


@contextlib.contextmanager
def side_by_side(engines: Sequence[AbstractContextManager[Made]]) -> Iterator[list[Made]]:
    """Start all of them, each in a thread of its own; those that have started end with the block.

    The threads stay until then, for a daemon ends with the thread that started it (`setpriv --pdeathsig`).
    """
    with ThreadPoolExecutor(len(engines)) as threads, contextlib.ExitStack() as started:
        starting = [threads.submit(started.enter_context, engine) for engine in engines]
        try:
            yield [each.result() for each in starting]
        finally:
            wait(starting)


class SharedEngine:
    """An engine of which there is one for all processes, or one of this process's own."""

    def __init__(
        self, variable: str, found: Callable[[Path], Any], started: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        """`found` makes it of its folder, `started` starts one that ends with the block."""
        self.variable = variable
        self._found = found
        self._started = started
        self._key = pytest.StashKey[Any]()

    @contextlib.contextmanager
    def shared(self) -> Iterator[Any]:
        """The one that all test processes share, or one of this process's own."""
        if folder := os.environ.get(self.variable):
            yield self._found(Path(folder))
            return
        with self._started() as made:
            yield made

    def of_run(self, config: pytest.Config) -> Any:
        """The one that all tests of this process use; its own, if it has none from outside, ends with the run."""
        if self._key not in config.stash:
            stack = contextlib.ExitStack()
            config.stash[self._key] = stack.enter_context(self.shared())
            config.add_cleanup(stack.close)
        return config.stash[self._key]

    @contextlib.contextmanager
    def variables(self) -> Iterator[dict[str, str]]:
        """One of the caller's own, as the variable by which test processes share it."""
        with self._started() as made:
            yield {self.variable: str(made.folder)}


def run_with(variables: AbstractContextManager[Mapping[str, str]], command: Sequence[str]) -> int:
    """Run a command with what the variables of an engine name; returns its exit code. SIGTERM ends both."""
    exit_at_sigterm()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what is in the background ignore it
    with variables as of_engine:
        return run(command, of_engine)


def exit_at_sigterm() -> None:
    """Let SIGTERM end this process as an exit does: with all that ends its engines, which a second one does not cut."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
    """Run a command to its end, with variables beside this process's own; returns its exit code.

    Ctrl-C reaches the command too, which may say what it was at and end what it has started. If this process ends in
    another way, the command is interrupted as if by Ctrl-C, and killed after END_SECONDS.
    """
    interrupted_with_this = ["setpriv", "--pdeathsig", "INT", *command]
    parent = os.getppid()
    with subprocess.Popen(interrupted_with_this, env={**os.environ, **(variables or {})}) as running:
        try:
            return running.wait()
        except BaseException as cause:
            try:
                if isinstance(cause, KeyboardInterrupt) and os.getppid() == parent:
                    running.wait()
                else:  # not Ctrl-C, or the signal at a parent's death, which only this process has had
                    running.send_signal(signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        running.wait(END_SECONDS)
            finally:
                running.kill()
            raise
