"""The supervisor's side of what a job leaves in a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import HeldFolder
from estimator_container.runtime.loop import Loop

from .agent_process import AgentOwner

AGENTS = 10
"""How many may end when what is left is sent, before that is given up."""
AGAIN_SECONDS = 10.0  # between two tries to start another


class Upload(AgentOwner):
    """The agent, and those that follow it if it is killed."""

    def __init__(self, loop: Loop, children: Children, settings: OutputSettings) -> None:
        """Raises OSError."""
        super().__init__(loop, children)
        self._finished: str | None = None
        self.not_uploadable = ""
        """What no store can hold, once it is finished: in words."""
        self._settings = settings
        self._ends = 0
        self._is_finishing = False
        self._start(settings)

    def finish(self) -> str:
        """Wait until everything is uploaded. Returns why an upload failed; "" if none did."""
        self._is_finishing, self._ends = True, 0
        if self._agent is not None:
            self._agent.finish()
        self._loop.run_until(lambda: self._finished is not None)
        self.abandon()
        return self._finished or ""

    def _on_message(self, message: list[str]) -> None:
        _, self._finished, self.not_uploadable = message

    def _lost(self, code: int) -> None:
        self._loop.after(0.0, lambda: self._go_on_without(code))

    def _go_on_without(self, code: int) -> None:
        """Somebody killed it: another sends everything again."""
        if self._finished is not None or self._agent is None:  # it has answered, or nothing is wanted any more
            return
        self._ends += 1
        if not self._is_finishing:
            self._loop.after(AGAIN_SECONDS, self._start_another)
        elif self._ends < AGENTS:
            self._start_another()
        else:
            self._finished = f"the process that uploads ended {self._ends} times, the last time with {code}"

    def _start_another(self) -> None:
        if self._finished is not None or self._agent is None:
            return
        try:
            another = self._start(self._settings)
        except OSError as error:
            if self._is_finishing:
                self._finished = f"no process that uploads can be started: {error.strerror}"
            else:
                self._loop.after(AGAIN_SECONDS, self._start_another)
            return
        if self._is_finishing:
            another.finish()


def upload(loop: Loop, children: Children, uri: str, files: Mapping[str, Path], held: HeldFolder) -> str:
    """Upload files, given by their keys, as long as the job's folder is still there. Returns why that failed, or ""."""
    paths = {key: str(path) for key, path in files.items()}
    return Upload(loop, children, OutputSettings(uri, paths, held=held)).finish()
