"""Where on this machine the data of a channel is, for the hosts and for what fetches it."""

from __future__ import annotations

from pathlib import Path

from estimator_container.agents.channels.channel import ChannelTask

from ....plan.plan import ChannelPlan
from ....values.home import JobFolder


def as_channel(channel: ChannelPlan, folder: JobFolder) -> ChannelTask:
    """A channel that is not in its place yet, as the toolkit has it."""
    return ChannelTask(
        name=channel.name,
        uri=channel.source,
        target=str(folder.channel(channel.name)),
        is_manifest=channel.is_manifest,
        is_sharded=channel.is_sharded,
        is_piped=channel.is_piped,
        is_gzipped=channel.is_gzipped,
        is_wrapped=channel.config.get("RecordWrapperType") == "RecordIO",
        seed=channel.seed,
    )


def place(channel: ChannelPlan, folder: JobFolder, host: str) -> Path | None:
    """The file or folder of this machine that a host is given; None for a channel that comes through a pipe."""
    if channel.is_piped:
        return None
    if channel.is_in_place:
        return Path(channel.source.removeprefix("file://")).absolute()
    return Path(as_channel(channel, folder).folder(host))
