"""The supervisor's side of what a job leaves in a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import HeldFolder
from estimator_container.runtime.loop import Loop

from .agent_process import AgentOwner


class Upload(AgentOwner):
    """One run of the agent."""

    def __init__(self, loop: Loop, children: Children, settings: OutputSettings) -> None:
        """Raises OSError."""
        super().__init__(loop, children)
        self._finished: str | None = None
        self.not_uploadable = ""
        """What no store can hold, once it is finished: in words."""
        self._process = self._start(settings)

    def finish(self) -> str:
        """Wait until everything is uploaded. Returns why an upload failed; "" if none did."""
        self._process.finish()
        self._loop.run_until(lambda: self._finished is not None)
        self.abandon()
        return self._finished or ""

    def _on_message(self, message: list[str]) -> None:
        _, self._finished, self.not_uploadable = message

    def _lost(self, code: int) -> None:
        if self._finished is None:
            self._finished = f"the process that uploads ended with {code}"


def upload(loop: Loop, children: Children, uri: str, files: Mapping[str, Path], held: HeldFolder) -> str:
    """Upload files, given by their keys, as long as the job's folder is still there. Returns why that failed, or ""."""
    paths = {key: str(path) for key, path in files.items()}
    return Upload(loop, children, OutputSettings(uri, paths, held=held)).finish()
