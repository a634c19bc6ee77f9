"""What the toolkit works with on one host: its loop, its programs, its part of the log, its own folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..contract.settings import Settings
from ..logs.events import EventLog, ProgramOutput
from ..logs.frames import FrameWriter
from ..mesh.endpoint import taken_ipv6_port
from ..runtime import machine, private_folder, reserve
from ..runtime.children import Children, OnExit, kill_descendants_but
from ..runtime.loop import Loop

if TYPE_CHECKING:
    import socket
    from re import Pattern

    from ..logs.aside import FramesAside

FLUSH_SECONDS = 20.0  # that a network file system may take for the last events; the first host waits for longer
DYING_SECONDS = 20.0  # that processes which are killed may take to end while other hosts hear of this one
Found = TypeVar("Found")


class Toolkit:
    """The toolkit's own things, until the host's end."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError or OSError where they cannot be had."""
        self._layout = settings.layout
        self._has_platform = settings.platform_address is not None
        self._blocked = (signal.SIGTERM,) if self._has_platform else ()
        self.loop = Loop()
        self.children = Children(self.loop)
        reserve.keep(settings.layout.reserve)
        self._files_may_hang = machine.may_hang(os.path.dirname(settings.layout.frames))
        self.events = EventLog(self._frames())
        self.scratch = _make_scratch(settings.scratch)
        private_folder.hold(self.scratch)
        self.shared_memory = _make_shared_memory(settings.shared_memory, self.scratch)
        self._taken: socket.socket | None = None
        self._name_folders()

    @property
    def socket(self) -> str:
        """Where the wrappers of this host's ranks find the toolkit."""
        return os.path.join(self.scratch, "host")

    @property
    def stacks(self) -> str:
        """The folder where the ranks leave their stacks."""
        path = os.path.join(self.scratch, "stacks")
        os.makedirs(path, exist_ok=True)
        return path

    @property
    def ipv6_port(self) -> int | None:
        """A port that no other program of this host can listen at; None where there is no IPv6."""
        if self._taken is None:
            self._taken = taken_ipv6_port()
        return self._taken.getsockname()[1] if self._taken is not None else None

    def start_program(
        self, argv: Sequence[str], env: Mapping[str, str], on_exit: OnExit, idle: Pattern[bytes] | None = None
    ) -> ProgramOutput:
        """Start a program of the toolkit's own; its words go to the log, but for `idle` lines.

        A scheduler's SIGTERM, which is for the ranks, does not end it.
        """
        output = ProgramOutput(self.loop, self.events, idle)
        try:
            self.children.start(argv, env, on_exit, output.write_fd, output.write_fd, blocked=self._blocked)
        finally:
            output.started()
        return output

    def end_programs(self, spare: Collection[int]) -> None:
        """End all that runs on this host but what is in `spare`, and remove the memory that it shared.

        The loop runs meanwhile: a process with much memory, or in the middle of a slow write, may take seconds to end,
        and other hosts would take this one for frozen.
        """
        self.loop.run_until(lambda: self.children.kill_all_but(spare), DYING_SECONDS)
        kill_descendants_but(spare)
        if self.shared_memory != self.scratch:
            try:
                private_folder.clear(self.shared_memory)
            except FileNotFoundError:  # a script that tidies up may have removed it
                os.mkdir(self.shared_memory, 0o700)

    def begin_again(self) -> None:
        """Make what an attempt writes to, for the files of the one before have been set aside. Raises OSError."""
        for folder in self._layout.written_by_the_job():
            os.makedirs(folder, exist_ok=True)
        reserve.keep(self._layout.reserve)
        self._name_folders()
        self.events.go_on_in(self._frames())

    def with_files(self, work: Callable[[], Found], then: Callable[[Found], object]) -> None:
        """Do `work` on the job's files, and call `then` with its result; in a thread if their file system may hang."""
        if self._files_may_hang:
            self.loop.aside(work, then)
        else:
            then(work())

    def flush_events(self) -> None:
        """Wait until the log has all events, at most `FLUSH_SECONDS`; the loop runs meanwhile."""
        written: list[None] = []
        self.with_files(lambda: self.events.flush(FLUSH_SECONDS), written.append)
        self.loop.run_until(lambda: bool(written))

    def _frames(self) -> FrameWriter | FramesAside:
        frames = FrameWriter(self._layout.frames)
        if self._files_may_hang:
            from ..logs.aside import FramesAside

            with contextlib.suppress(RuntimeError):  # no room for a thread
                return FramesAside(frames)
        return frames

    def _name_folders(self) -> None:
        """Say on a platform what is to be removed if this process is killed."""
        if self._has_platform:
            private_folder.write(self._layout.temporary_folders, "\n".join({self.scratch, self.shared_memory}))

    def remove_folders(self) -> None:
        """Remove the host's temporary folders, as far as that is possible."""
        for folder in {self.scratch, self.shared_memory}:
            shutil.rmtree(folder, ignore_errors=True)


def _make_scratch(given: str | None) -> str:
    """A private folder with a short name: the path of a socket has at most 107 bytes."""
    return private_folder.given(given) if given else private_folder.make(private_folder.base())


def _make_shared_memory(given: str | None, scratch: str) -> str:
    """Where the ranks of this host share memory: a folder of their own in memory, if there is such a place."""
    return private_folder.given(given) if given else private_folder.make_for_memory(scratch)
