"""The ranks of this host, as the toolkit sees them through their wrappers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from ..contract.names import PLATFORM_ADDRESS
from ..logs.frames import NO_RANK
from ..runtime.children import OnExit, signal_group
from ..runtime.links import Link, Listener, listen_unix
from ..runtime.loop import Loop
from . import wrapper
from .script_runner import WEIGHTS_VARIABLE

_NOT_STARTED = "the wrapper of the script ended before it could start it\n"


class RankCommand(NamedTuple):
    """What every wrapper on this host runs."""

    argv: tuple[str, ...]
    folder: str
    """The working directory."""
    frames: str
    """The file that takes all that the rank writes."""
    dropped: tuple[str, ...]
    """Variables of the wrapper's environment that are not the script's business."""
    settings: dict[str, str]
    """Variables of the script, over those that MPI gave the wrapper."""
    alive: str = ""
    """The folder of `Layout.alive`, if the rank is to have its files there open."""
    python: str = ""
    """The interpreter of scripts."""


class RankEnd(NamedTuple):
    """How one rank ended."""

    rank: int
    """As `frames.number_of` has it: from SPAWNED on it is one that another rank started."""
    code: int
    """The exit code, or minus the number of the signal."""
    told: bool
    """Whether MPI had told it to end: then it is not the one that failed first."""
    stderr_tail: str
    out_of_memory: bool = False
    """Whether the kernel killed it because its host had no memory left."""

    def to_fields(self) -> tuple[str, ...]:
        """As one host tells another."""
        told, memory = "told" if self.told else "", "memory" if self.out_of_memory else ""
        return (str(self.rank), str(self.code), told, self.stderr_tail, memory)

    @classmethod
    def from_fields(cls, rank: str, code: str, told: str, stderr_tail: str, memory: str) -> RankEnd:
        """The way back from `to_fields`."""
        return cls(int(rank), int(code), bool(told), stderr_tail, bool(memory))


class RankServer:
    """Tells the wrappers of this host what to run, and hears what becomes of it."""

    def __init__(
        self,
        loop: Loop,
        path: str,
        on_started: Callable[[int], None],
        on_ended: Callable[[RankEnd], None],
        on_frozen: Callable[[int, int], None],
        on_weights: Callable[[list[str]], None],
        on_stalled: Callable[[int, str], None],
    ) -> None:
        self.path = path
        self.command: RankCommand | None = None
        self.pids: dict[int, int] = {}
        """Rank -> pid, which is also its process group, of the ranks that run."""
        self.variables_of: Callable[[int], Mapping[str, str]] = lambda rank: {}
        """What one rank finds in its environment, over what all do."""
        self.module_of: Callable[[int], str | None] = lambda rank: None
        """The module that a rank runs in the place of the command; None for the command."""
        self._told: set[int] = set()
        """The ranks that have been told to end."""
        self.cpus_of: Callable[[int, int], Collection[int]] = lambda rank, local_rank: ()
        """The CPUs that a rank keeps to, by its number and its local rank; empty where it may use any."""
        self.deferential = False
        """Whether ranks interrupt nobody who runs: where they are many to a CPU, all would interrupt each other."""
        self.mpirun_watches = False
        """Whether mpirun sees how the wrappers end, and says more of it."""
        self.on_spawned: Callable[[int], None] = lambda rank: None
        """Called with a rank that another one starts, before there is a process of it: the other may end soon after."""
        self._on_started = on_started
        self._on_ended = on_ended
        self._on_frozen = on_frozen
        self._on_weights = on_weights
        self._on_stalled = on_stalled
        self._awaited: dict[int, object] = {}
        """Rank -> a token for the wrapper that was started for it and has not asked for a command yet."""
        self._links: dict[Link, int] = {}
        self._other_links: set[Link] = set()
        """Of wrappers whose rank has ended, and of the scripts themselves."""
        self._loop = loop
        self._listener = Listener(loop, listen_unix(path), self._accept)

    def close(self) -> None:
        """Hear no more of these ranks; another server may have the path."""
        self._awaited.clear()
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        for link in (*self._links, *self._other_links):
            link.close()

    def expect_wrapper(self, rank: int) -> OnExit:
        """Returns what to call when this rank's wrapper exits: if it never asked for a command, the rank has ended."""
        self._awaited[rank] = token = object()  # the wrapper of the rank's last step may not have exited yet

        def ended(code: int) -> None:
            if self._awaited.get(rank) is token:
                del self._awaited[rank]
                self._on_ended(RankEnd(rank, code or 1, False, _NOT_STARTED))

        return ended

    def signal_all(self, signum: int) -> None:
        """Signal every rank's process group."""
        for pid in self.pids.values():
            signal_group(pid, signum)

    def tell_scripts_to_end(self) -> None:
        """SIGTERM, once, to those that run the script: they may need what the others serve to end in their own way."""
        for rank, pid in self.pids.items():
            if self.module_of(rank) is None and rank not in self._told:
                self._told.add(rank)
                signal_group(pid, signal.SIGTERM)

    def hold(self) -> None:
        """Keep the wrappers until the world ends, so that the end of one rank ends no other."""
        for link in list(self._links):
            link.send("hold")

    def _accept(self, sock: socket.socket) -> None:
        Link(self._loop, sock, self._on_message, self._on_close)

    def _on_message(self, link: Link, message: list[str]) -> None:
        kind = message[0]
        if kind == "rank":
            self._links[link] = int(message[1])
            self._awaited.pop(int(message[1]), None)
            self._send_command(link, self.command, int(message[1]), int(message[2]))
        elif kind == "spawned" and self.command is not None:
            self._links[link] = int(message[1])
            self.on_spawned(int(message[1]))
            from . import spawned  # few scripts start ranks

            folder, *words = message[3:]
            settings = dict(self.command.settings)
            settings.pop(WEIGHTS_VARIABLE, None)  # by its rank alone it would be taken for one of the job's own world
            # On one machine, and in containers, the directory of every rank is there.
            home = os.environ.get("HOME") if PLATFORM_ADDRESS in os.environ else None
            command = self.command._replace(
                argv=spawned.argv(words, settings.get("PATH")),
                folder=spawned.folder_here(folder, self.command.folder, home),
                settings=settings,
            )
            self._send_command(link, command, int(message[1]), int(message[2]))
        elif kind == "started":
            rank = self._links[link]
            if int(message[1]):
                self.pids[rank] = int(message[1])
            self._told.discard(rank)
            self._on_started(rank)
        elif kind == "told":
            self._told.add(self._links[link])
        elif kind == "frozen":
            self._on_frozen(self._links[link], int(message[1]))
        elif kind == "thawed":
            self._on_frozen(self._links[link], 0)
        elif kind == "stalled":
            self._on_stalled(self._links[link], message[1])
        elif kind == "ended":
            rank = self._links.pop(link)
            self._other_links.add(link)
            self.pids.pop(rank, None)
            self._on_ended(RankEnd(rank, int(message[1]), bool(message[2]), message[3]))
        elif kind == "weights":
            self._other_links.add(link)
            self._on_weights(message[1:])

    def _send_command(self, link: Link, command: RankCommand | None, rank: int, local_rank: int) -> None:
        if command is None:
            link.close()
            return
        module = self.module_of(rank)
        if module is not None:
            # It writes no checkpoints, so nobody looks whether it lives when one is written.
            command = command._replace(argv=(command.python, "-u", "-m", module), alive="")
        counts = (str(len(command.argv)), str(len(command.dropped)))
        settings = [f"{name}={value}" for name, value in {**command.settings, **self.variables_of(rank)}.items()]
        cpus = ",".join(map(str, self.cpus_of(rank, local_rank)))
        where = (command.frames, command.folder, command.alive, cpus, "batch" if self.deferential else "")
        link.send("run", *where, *counts, *command.argv, *command.dropped, *settings)

    def _on_close(self, link: Link) -> None:
        self._other_links.discard(link)
        rank = self._links.pop(link, None)
        if rank is None:
            return
        pid = self.pids.pop(rank, None)
        if pid is not None:
            # The wrapper is gone and the rank is not: somebody killed the wrapper, mpirun if that had told it to end.
            signal_group(pid, signal.SIGKILL)
            told = rank in self._told
            self._on_ended(RankEnd(rank, -signal.SIGKILL, told, "the wrapper of this rank was killed\n"))
        elif not self.mpirun_watches:
            self._on_ended(RankEnd(rank, 1, False, _NOT_STARTED))


def rank_or_none(rank: int) -> int | None:
    """The rank that a frame's number means; None for `NO_RANK`."""
    return None if rank == NO_RANK else rank


WRAPPER = wrapper.__file__
