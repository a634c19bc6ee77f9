"""The settings of the agent that fetches channels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from ..agent import AgentSettings
from .channel import ChannelTask, Links


@dataclass(frozen=True)
class ChannelSettings(AgentSettings):
    """The channels of a job, and the hosts that get them."""

    room: ClassVar[str] = "channels"
    channels: tuple[ChannelTask, ...]
    hosts: dict[str, str]
    """The name of each host, and its `input/data`, which takes the FIFOs."""
    links: Links
    """What stands for a file of this machine."""
    frames: str
    """The log that takes its events."""
    wanted: tuple[str, ...] | None = None
    """The hosts whose shares are fetched, where others are fetched elsewhere; None is all hosts."""

    @classmethod
    def from_json(cls, text: str) -> ChannelSettings:
        fields = json.loads(text)
        return cls(**{**fields, "channels": tuple(ChannelTask(**each) for each in fields["channels"])})
