"""What the agents tell of channels, checkpoints and outputs, in the first host's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from .event import Event


class ChannelFetching(Event):
    """A channel begins to be fetched."""

    channel: str
    source: str


class ChannelProgress(Event):
    """Twice a second, how far that is."""

    channel: str
    bytes: int
    objects: int
    seconds: float


class ChannelFetched(Event):
    """All of a channel is there."""

    channel: str
    bytes: int
    objects: int
    seconds: float


class ChannelPiped(Event):
    """The first FIFO of a channel is made."""

    channel: str
    source: str


ChannelEvent = Union[ChannelFetching, ChannelProgress, ChannelFetched, ChannelPiped]


class CheckpointRestored(Event):
    """What an attempt begins with."""

    attempt: int
    passed_over: Sequence[str]
    """Newer snapshots that were not whole, each with what was wrong."""
    base: str
    """The name of a snapshot, `plain` for a tree without any, or `nothing`."""
    files: int
    bytes: int


class CheckpointPublished(Event):
    """A snapshot is in the store."""

    snapshot: str
    files: int
    bytes: int
    sent: int
    """Of those bytes, what was not in the store before."""
    seconds: float
    """Since the first change that it has."""


class CheckpointLag(Event):
    """Every 5 s, while something has waited for 5 s or more."""

    bytes: int
    seconds: float
    open: Sequence[str]
    """Files that are waited for."""


class CheckpointLeftOut(Event):
    """Once of each new file that has been open for writing for long: it is not kept before it is closed."""

    files: Sequence[str]


class CheckpointFailed(Event):
    """A publication failed; it is tried again."""

    reason: str
    bytes: int
    """That are not in the store."""


CheckpointEvent = Union[CheckpointRestored, CheckpointPublished, CheckpointLag, CheckpointLeftOut, CheckpointFailed]


class OutputsUploaded(Event):
    """Files of `output/intermediate` are in the store."""

    files: Sequence[str]


class OutputsFailed(Event):
    """They could not be uploaded; it is tried again."""

    reason: str


class OutputsLeftOut(Event):
    """Files that no store can hold: they stay in the job's folder."""

    files: Sequence[str]
    reason: str


OutputEvent = Union[OutputsUploaded, OutputsFailed, OutputsLeftOut]
