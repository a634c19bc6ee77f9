"""Start the supervisor of a job, which goes on when the session ends, and bring what it needs."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_container.contract.reserved import Reserved
from estimator_container.mesh.endpoint import text_of

from ....plan.plan import Plan
from ....values.home import home, jobs_folder, make_folder, secured
from ...supervised.client import start
from ...supervised.job import LocalJob
from .facts import HOSTS, address_of_this_machine
from .words import POOL_VARIABLE


def supervise(
    given: Mapping[str, Any], code: str | None, channels: Mapping[str, str], pool: Mapping[str, Any]
) -> dict[str, Any]:
    """Start the supervisor of a job on this machine. Returns its folder, and where hosts find it.

    `given` is the plan, as its client has made it; where the code's bundle and `channels` are here, it could not know.
    `pool` is what `machines.PoolMachines` needs, secret included. Raises EstimatorError and OSError.
    """
    plan = Plan.from_json(json.dumps(given))
    told = {**plan.hyperparameters, **(Reserved(submit_directory=code).encode() if code else {})}
    output = plan.output_path if plan.output_path.startswith("s3://") else f"file://{jobs_folder()}"
    data = tuple(
        replace(channel, source=f"file://{channels[channel.name]}") if channel.name in channels else channel
        for channel in plan.channels
    )
    plan = replace(plan, hyperparameters=told, code=code, output_path=output, channels=data)
    with socket.create_server((address_of_this_machine(), 0), backlog=256) as door:
        job = start_with_pool(plan, door, pool)
        return {"folder": str(job.path), "door": text_of(door)}


def start_with_pool(plan: Plan, door: socket.socket, pool: Mapping[str, Any]) -> LocalJob:
    """Start the supervisor of a job, whose hosts' keepers find it at a socket that listens; see `supervise`.

    Raises EstimatorError and OSError.
    """
    with os.fdopen(os.memfd_create("pool"), "wb") as settings:  # in memory alone: it has the secret
        settings.write(json.dumps(pool).encode())
        settings.flush()
        inherited = (door.fileno(), settings.fileno())
        return start(plan, {POOL_VARIABLE: ",".join(map(str, inherited))}, inherited)


def unpack_channel(archive: Path, keeper: str, name: str) -> str:
    """Put a channel of the client's machine where the keeper of this machine removes it. Returns where it is.

    Raises OSError.
    """
    import tarfile  # most jobs have none

    folder = secured(home() / HOSTS) / keeper / "channels" / name
    make_folder(folder)
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    archive.unlink()
    (inside,) = folder.iterdir()
    return str(inside)
