"""Names of channels: the rule that all backends share, for each name and for all names of a job together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from estimator_container.contract.names import OUR_CHANNELS

from ..errors import InvalidArgument
from ..values.naming import shown
from .job_document import Channel

# "ChannelName" in the API reference of CreateTrainingJob's Channel.
_PATTERN = re.compile(r"[A-Za-z0-9.\-_]{1,64}")


def checked(name: object, argument: str) -> str:
    """`name` itself. Raises InvalidArgument for one that no channel of a user's can have."""
    if not isinstance(name, str) or _PATTERN.fullmatch(name) is None:
        what = "is not a valid channel name; use up to 64 letters, digits, '.', '-' and '_', such as 'train'"
        raise InvalidArgument(argument, f"{argument}: {shown(name)} {what}")
    if name in (".", ".."):
        raise InvalidArgument(
            argument,
            f"{argument}: {name!r} is not a valid channel name, because no folder can have it; use one such as 'train'",
        )
    if name in OUR_CHANNELS:
        raise InvalidArgument(argument, f"{argument} has a name reserved for the toolkit's own channel; rename it")
    return name


def check(channels: Sequence[Channel]) -> None:
    """Raises InvalidArgument for a name that cannot be, and for two that the script could not tell apart."""
    known: dict[str, str] = {}
    for channel in channels:
        name = channel.channel_name
        argument = f"inputs[{name!r}]"
        variable = f"SM_CHANNEL_{checked(name, argument).upper()}"
        if variable in known:
            other = known[variable]
            what = "names two channels" if other == name else f"and inputs[{other!r}] would both be {variable}"
            raise InvalidArgument(argument, f"{argument} {what}; rename one of them")
        known[variable] = name
