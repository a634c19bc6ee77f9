"""What every agent is: a process that works for its owner, who tells it what to do over a socket.

    python -I -S agent.py FD SEARCH_PATH

FD is its end of the socket, SEARCH_PATH where to look for modules, as JSON. The first message is its settings. No
signal ends it: its owner says when it is time, or goes away.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar

from ..runtime.links import Link
from ..runtime.loop import Loop
from .background import BackgroundCall

S = TypeVar("S", bound="AgentSettings")
T = TypeVar("T")


@dataclass(frozen=True)
class AgentSettings:
    """The settings of an agent, which its owner sends first."""

    room: ClassVar[str]
    """The folder of its program."""

    @property
    def script(self) -> str:
        """The program that takes these settings."""
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), self.room, "agent.py")

    def to_json(self) -> str:
        """The settings as JSON, for the agent's first message."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls: type[S], text: str) -> S:
        """The way back; what was a tuple is a list."""
        return cls(**json.loads(text))


class Agent:
    """One thread hears the owner; what takes its time is done in others."""

    def __init__(self, owner: socket.socket) -> None:
        self._loop = Loop()
        self._link = Link(self._loop, owner, self._told, lambda link: self._owner_gone())
        self._is_over = False
        self._running = 0

    def run(self) -> None:
        """Serve until the owner has been answered for the last time, or is gone."""
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        self._loop.run_until(lambda: self._is_over)

    @property
    def is_busy(self) -> bool:
        """Whether a background call is running."""
        return self._running > 0

    def in_background(self, call: Callable[[], T], ended: Callable[[BackgroundCall[T]], None]) -> None:
        """Make a call in a thread; `ended` is called with its result, in this one."""

        def note(made: BackgroundCall[T]) -> None:
            self._running -= 1
            ended(made)

        self._running += 1
        BackgroundCall(call, lambda made: self._loop.from_thread(lambda: note(made)))

    def _begin(self, settings: str) -> None:
        raise NotImplementedError

    def _finish(self, value: str) -> None:
        """Do what is left, and end."""
        raise NotImplementedError

    def _owner_gone(self) -> None:
        raise NotImplementedError

    def _answer(self, kind: str, *facts: str) -> None:
        self._link.send(kind, *(fact.replace("\0", "") for fact in facts))

    def _told(self, link: Link, message: list[str]) -> None:
        kind, value = message
        if kind == "settings":
            self._begin(value)
        elif kind == "finish":
            self._finish(value)
