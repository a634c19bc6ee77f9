"""The agent of a job's checkpoints on the machine of the first host, where the supervisor is on another one.

What it publishes never passes through the supervisor, which restores: both reach the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop, Timer

from ....values.home import make_folder
from . import words

if TYPE_CHECKING:
    from estimator_container.agents.checkpoints.settings import CheckpointSettings

    from ...supervised.agents.agent_process import AgentProcess

_FINISH, _CLOSE, _KILL = "finish", "close", "kill"
_RESTORED, _FAILED, _FINISHED = "restored", "failed", "finished"
"""What it answers."""
ANSWER_SECONDS = 5.0
"""Beyond those that it may take to finish, for its answer."""
_LOST = "what was written last may be lost with the machine of the first host"


class KeptAgent:
    """As the keeper of the host has it."""

    def __init__(self, loop: Loop, children: Children, send: Callable[..., None]) -> None:
        """`send` takes the fields of a message to the supervisor."""
        self._loop = loop
        self._children = children
        self._send = send
        self._agent: AgentProcess | None = None

    def begin(self, given: str, layout: Layout) -> None:
        """Watch the files of the host from now on, as settings of the supervisor say. Raises OSError."""
        from dataclasses import replace  # the keepers of most hosts begin none

        from estimator_container.agents.checkpoints.settings import CheckpointSettings

        from ...supervised.agents.agent_process import AgentProcess

        make_folder(layout.checkpoints)
        make_folder(os.path.dirname(layout.frames))  # noqa: PTH120
        Path(layout.frames).touch(0o600)
        told = CheckpointSettings.from_json(given)
        settings = replace(told, folder=layout.checkpoints, alive=layout.alive, frames=layout.frames)
        self._agent = AgentProcess(
            self._loop,
            self._children,
            settings,
            lambda message: self._send(words.AGENT_SAYS, *message),
            lambda code: self._send(words.AGENT_ENDED, str(code)),
        )

    def tell(self, what: str, value: str) -> None:
        """What its owner wants of it."""
        if self._agent is None:
            return
        if what == _FINISH:
            self._agent.finish(value)
        elif what == _CLOSE:
            self._agent.close()
        else:
            self._agent.kill()


class AgentElsewhere:
    """As the supervisor has it, one an attempt: see `AgentProcess` for what its owner may do, and `AgentObserver`.

    It begins when all files of the first host are there.
    """

    def __init__(self, loop: Loop, send: Callable[..., None]) -> None:
        """`send` takes a machine and the fields of a message to its keeper."""
        self._loop = loop
        self._send = send
        self._machine: str | None = None
        """That of the first host, once it has begun there."""
        self._settings: CheckpointSettings | None = None
        """None without an owner."""
        self._hear: Callable[[list[str]], None]
        self._ended: Callable[[int], None]
        self._begun: Callable[[str | None], None] | None = None
        self._is_lost = self._is_over = False
        """Whether the machine is on which it had begun, and whether it has said its last word there."""
        self._over: list[Callable[[], None]] = []
        """What is called when it has finished."""
        self._over_late: Timer | None = None
        """Calls that where it does not answer."""

    @property
    def has_owner(self) -> bool:
        """Whether somebody waits for what it says."""
        return self._settings is not None

    def start(
        self, settings: CheckpointSettings, hear: Callable[[list[str]], None], ended: Callable[[int], None]
    ) -> AgentElsewhere:
        """Take an owner. It begins at once where another has just ended beside the host."""
        from dataclasses import replace

        self._settings, self._hear, self._ended = replace(settings, copies=(), held=None), hear, ended
        if self._machine is not None:
            self.begin(self._machine, self._begun or (lambda why: None))
        return self

    def begin(self, machine: str, begun: Callable[[str | None], None]) -> None:
        """Begin on a machine; `begun` is called with None, or why that cannot be, and at once without an owner."""
        if self._settings is None:
            begun(None)
            return
        self._machine, self._begun, self._is_lost, self._is_over = machine, begun, False, False
        self._send(machine, words.AGENT, self._settings.to_json())

    def finish(self, value: str = "") -> None:
        """As `AgentProcess.finish`; what has not begun has nothing to publish."""
        if self._machine is None:
            self._hear([_FINISHED, "0", _LOST if self._is_lost else "", ""])
        else:
            self._send(self._machine, words.TELL_AGENT, _FINISH, value)

    def finish_then(self, seconds: float, then: Callable[[], None]) -> None:
        """Have it finish, if it was not told to before, and call `then` when it has or nobody waits for it any more.

        One that does not answer is waited for so many seconds, and `ANSWER_SECONDS` more.
        """
        if self._machine is None or self._settings is None or self._is_over:
            then()
            return
        self._over.append(then)
        if len(self._over) == 1:
            self.finish(str(seconds))
            self._over_late = self._loop.after(seconds + ANSWER_SECONDS, self._call_over)

    def close(self) -> None:
        """As `AgentProcess.close`; it has no owner any more."""
        self._leave(_CLOSE)

    def kill(self) -> None:
        """The same, with `AgentProcess.kill`."""
        self._leave(_KILL)

    def _leave(self, how: str) -> None:
        if self._machine is not None:
            self._send(self._machine, words.TELL_AGENT, how, "")
        self._machine = self._settings = self._begun = None
        self._call_over()

    # What is heard of it.

    def agent_says(self, machine: str, kind: str, fields: list[str]) -> None:
        if machine != self._machine or self._settings is None:
            return
        self._is_over = self._is_over or kind == words.AGENT_ENDED or fields[0] in (_FAILED, _FINISHED)
        if kind == words.AGENT_ENDED:
            self._ended(int(fields[0]))
            self._call_over()
            return
        self._hear(fields)
        begun, why = self._begun, {_RESTORED: None, _FAILED: fields[1] if len(fields) > 1 else ""}
        if fields[0] in why and begun is not None:
            self._begun = None
            begun(why[fields[0]])
        if fields[0] in (_FINISHED, _FAILED):
            self._call_over()

    def machine_lost(self, machine: str) -> None:
        if machine == self._machine and self._settings is not None:
            self._machine, self._is_lost = None, True
            self._ended(-9)
            self._call_over()

    def _call_over(self) -> None:
        if self._over_late is not None:
            self._over_late.cancel()
        over, self._over = self._over, []
        for then in over:
            then()
