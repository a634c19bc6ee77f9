"""Channels on each node's own disk: where that is possible, and where it is not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ....errors import InvalidArgument
from ....plan.plan import Plan
from ....values.home import home
from ..options import SlurmOptions

_WHERE = "slurm['local_scratch']"


def with_scratch(plan: Plan, options: SlurmOptions, is_of_job: bool) -> Plan:
    """The plan with its channels where the option says; `is_of_job` tells a job's own word from its site's.

    Raises InvalidArgument for what cannot be, or would come to nothing.
    """
    scratch = options.local_scratch
    if scratch is None:
        return plan
    what = f"{_WHERE} is {scratch!r}"
    if Path(os.path.normpath(scratch)).is_relative_to(os.path.normpath(home())):
        hint = "name a folder of each node's own disk"
        raise InvalidArgument(_WHERE, f"{what}, but {home()} is the folder that the nodes share; {hint}")
    fetched = [channel for channel in plan.channels if not channel.is_in_place]
    if not fetched:
        if is_of_job:
            why = "no channel is fetched: what is on the file system that the nodes share is read there"
            raise InvalidArgument(_WHERE, f"{what}, but {why}; leave it out, or give a channel from s3://")
        return plan
    shares = next((channel for channel in fetched if channel.is_sharded), None)
    if shares is not None and plan.spare_hosts:
        why = f"inputs[{shares.name!r}] is a share for each host, and a spare node cannot know whose it will need"
        raise InvalidArgument(_WHERE, f"{what}, but {why}; leave out local_scratch or spare_hosts")
    return replace(plan, local_scratch=scratch)
