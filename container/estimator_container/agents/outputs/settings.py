"""What the owner tells the agent that uploads what a job leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...runtime.folder_hold import HeldFolder
from ..agent import AgentSettings


@dataclass(frozen=True)
class OutputSettings(AgentSettings):
    """Files, and folders that are watched."""

    room: ClassVar[str] = "outputs"
    uri: str
    """The store."""
    files: dict[str, str] = field(default_factory=dict)
    """Key -> path of what is there already."""
    folders: dict[str, str] = field(default_factory=dict)
    """Prefix -> path of what is watched; a file that settles there goes under the prefix, and stays when it goes."""
    named: dict[str, str] = field(default_factory=dict)
    """Prefix -> the path by which the script knows the folder, if that is different."""
    frames: str | None = None
    """The log that takes its events."""
    held: HeldFolder | None = None
    """The job's folder, as its owner holds it: where another is in its place, nothing goes up."""
