"""An agent as its owner sees it: a process that gets messages over a socket and can be ended at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from typing import Any, Protocol

from estimator_container.agents.agent import AgentSettings
from estimator_container.runtime.children import Children
from estimator_container.runtime.links import Link
from estimator_container.runtime.loop import Loop

from ..detached import bare
from ..stopping import STOPPED_BY


class RunningAgent(Protocol):
    """What an owner may do with an agent that it has started."""

    def finish(self, value: str = "") -> None:
        """Ask it to finish its work, answer and exit."""

    def close(self) -> None:
        """Close the connection, upon which the agent exits."""

    def kill(self) -> None:
        """Kill the agent; nothing is heard of it any more."""


StartAgent = Callable[[Any, Callable[[list[str]], None], Callable[[int], None]], RunningAgent]
"""Starts an agent elsewhere, with its settings, what takes its messages and what is called when it has ended."""


class AgentProcess:
    """Runs the agent that takes the settings."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        settings: AgentSettings,
        hear: Callable[[list[str]], None],
        ended: Callable[[int], None],
    ) -> None:
        """`ended` is called with its exit code, or minus a signal's number, unless `kill` ended it. Raises OSError."""
        self._loop = loop
        self._on_ended = ended
        self._code: int | None = None
        self._killed = False
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            argv = bare(settings.script, str(theirs.fileno()))
            # It ignores these, but not before it runs.
            self._pid = children.start(argv, os.environ, self._ended, blocked=STOPPED_BY)
        self._link = Link(loop, ours, lambda link, message: hear(message), lambda link: self._tell())
        self._link.send("settings", settings.to_json())

    def finish(self, value: str = "") -> None:
        """Ask it to finish its work, answer and exit."""
        self._link.send("finish", value)

    def close(self) -> None:
        """Close the connection, upon which the agent exits."""
        self._link.close()

    def kill(self) -> None:
        """Kill the agent; when this returns it has exited, and its files are closed."""
        self._killed = True
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self.close()  # not earlier: it would take that for our death
        if self._code is None:
            self._loop.run_until(lambda: self._code is not None)

    def _ended(self, code: int) -> None:
        self._code = code
        self._tell()

    def _tell(self) -> None:
        """Say that it has ended, once all that it has said is heard."""
        if self._code is not None and self._link.closed and not self._killed:
            self._on_ended(self._code)


class AgentOwner:
    """The base of what owns an agent, which may not have been started yet, or may have ended."""

    def __init__(self, loop: Loop, children: Children) -> None:
        self._loop = loop
        self._children = children
        self._agent: RunningAgent | None = None

    def _start(self, settings: AgentSettings) -> RunningAgent:
        """Raises OSError."""
        self._agent = AgentProcess(self._loop, self._children, settings, self._on_message, self._lost)
        return self._agent

    def abandon(self) -> None:
        """Kill the agent at once, because what it works on no longer belongs to this job."""
        if self._agent is not None:
            self._agent.kill()
            self._agent = None

    def _on_message(self, message: list[str]) -> None:
        raise NotImplementedError

    def _lost(self, code: int) -> None:
        """It has ended by itself, or somebody killed it: `code` is its exit code, or minus a signal's number."""
        raise NotImplementedError
