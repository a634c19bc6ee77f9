"""What a running job has brought to its stores so far: of thousands of snapshots one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimator_container.contract import agent_events

from ..values.naming import size
from .sentences import counted

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent


class Kept:
    """Takes the events of a job."""

    def __init__(self) -> None:
        self._snapshots = 0
        self._last: agent_events.CheckpointPublished | None = None
        self._checkpoints_wait = False
        self._outputs_wait = False

    def take(self, event: AnyEvent) -> str | None:
        """Note an event; returns a sentence where it says that what was in arrears is in the store now."""
        match event:
            case agent_events.CheckpointPublished():
                self._snapshots, self._last = self._snapshots + 1, event
                waited, self._checkpoints_wait = self._checkpoints_wait, False
                return f"checkpoints: snapshot {event.snapshot} is in the store" if waited else None
            case agent_events.CheckpointFailed() | agent_events.CheckpointLag():
                self._checkpoints_wait = True
            case agent_events.OutputsUploaded():
                waited, self._outputs_wait = self._outputs_wait, False
                return f"outputs: {counted(len(event.files), 'file', 'files')} uploaded" if waited else None
            case agent_events.OutputsFailed():
                self._outputs_wait = True
        return None

    @property
    def checkpoints(self) -> str:
        """How many snapshots there are, and the last of them; empty where there is none."""
        if self._last is None:
            return ""
        files = counted(self._last.files, "file", "files")
        what = f"{files}, {size(self._last.bytes)}"
        return f"{counted(self._snapshots, 'snapshot', 'snapshots')}, the last {self._last.snapshot} ({what})"
