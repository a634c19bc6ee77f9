"""The program that supervises a job in its allocation."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

from ....plan.plan import Plan
from ...supervised.job_folder.hold import NotOurs
from ...supervised.job_folder.record import Record, read_record
from ...supervised.supervisor.supervisor import Supervisor
from ..files import BEFORE_MODULES, SlurmFolder
from .hosts import SlurmHosts
from .nodes import SlurmAllocation
from .start_hold import StartHold


def main(path: str) -> int:
    """Run the job in a folder."""
    folder = SlurmFolder(Path(path))
    hold = StartHold(folder, int(os.environ.get("SLURM_RESTART_COUNT", "0")))
    number, submitted = int(os.environ["SLURM_JOB_ID"]), folder.read_number()
    if submitted is None:
        # For a client that was killed before it could.
        folder.write_number(number, os.environ.get("SLURM_CLUSTER_NAME", ""))
    elif submitted != number:
        what = f"job {number} of Slurm was submitted for a folder {path} that was removed"
        print(f"{what}: what is there now belongs to job {submitted}", file=sys.stderr)
        return 1
    record = read_record(folder)
    if record is not None and record.is_final:  # put back in the queue while it ended
        return _exit_code(record)
    hold.take()
    given = json.loads(folder.given.read_text(encoding="utf-8"))
    plan = Plan.from_json(given["plan"])
    allocation = SlurmAllocation(_of_hosts(plan))
    os.environ.update(given["variables"])  # for what reads and writes stores, and not for hosts
    if folder.stop_request.exists():
        os.kill(os.getpid(), signal.SIGINT)  # which is blocked until the supervisor takes it
    supervisor = Supervisor(plan, folder, hold, partial(SlurmHosts, allocation), allocation)
    supervisor.run()
    allocation.close()
    try:
        hold.check()
    except NotOurs:
        return 1  # whoever has the folder now needs what was given
    if not supervisor.comes_again:
        folder.given.unlink(missing_ok=True)
    return _exit_code(read_record(folder))


def _exit_code(record: Record | None) -> int:
    """What Slurm, and jobs that depend on this one, are told of its end."""
    return 0 if record is not None and record.status == "Completed" else 1


def _of_hosts(plan: Plan) -> dict[str, str]:
    """What hosts inherit, of what the job was submitted with and what Slurm and modules have added."""
    before = os.environ.pop(BEFORE_MODULES, None)
    had = None if before is None else before.split()
    added = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("SLURM") or (had is not None and name not in had)
    }
    return {**added, **plan.inherited_from(os.environ)}
