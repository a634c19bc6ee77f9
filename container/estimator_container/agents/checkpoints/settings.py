"""What the owner tells the agent that keeps checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...runtime.folder_hold import HeldFolder
from ..agent import AgentSettings

KEPT = 3  # snapshots; one would be enough, were it not for a store that damages it
LOG_SECONDS = 30.0  # that somebody has a file open before what was appended to it counts: no checkpoint takes so long
UNKEPT_SECONDS = 30.0  # that somebody has a file open that is in no snapshot before others are kept without it


@dataclass(frozen=True)
class CheckpointSettings(AgentSettings):
    """A folder, and the store of its snapshots."""

    room: ClassVar[str] = "checkpoints"
    uri: str
    folder: str
    copies: Sequence[str]
    """Folders of the job's other hosts on this machine, which begin with the same."""
    alive: str
    """Where the ranks that write to the folder have files open; see `ranks_alive`."""
    frames: str
    """The log that takes its events."""
    job: str
    restore: bool
    """Whether the folder is to be filled first; not when an earlier agent of the same attempt was killed."""
    at_hand: bool = False
    """Whether it holds what an earlier attempt has left, which is not fetched again where it is the same."""
    kept: int = KEPT
    """How many snapshots stay in the store."""
    log_seconds: float = LOG_SECONDS
    unkept_seconds: float = UNKEPT_SECONDS
    named: str = ""
    """The folder's path as the script knows it, if that is different."""
    after: int = 0
    """The number that another agent of the attempt has claimed in the store, which this one must find there."""
    held: HeldFolder | None = None
    """The job's folder, as its owner holds it: where another is in its place, nothing is published."""
