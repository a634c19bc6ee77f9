"""The program that supervises a job in its allocation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ...plan.plan import Plan
from ..supervised.job_folder.hold import Hold
from ..supervised.supervisor.supervisor import Supervisor
from .files import SlurmFolder
from .hosts import SlurmHosts
from .nodes import SlurmAllocation


def main(path: str) -> int:
    """Run the job in a folder."""
    folder = SlurmFolder(Path(path))
    hold = Hold(folder)
    plan = Plan.from_json(folder.whole_plan.read_text(encoding="utf-8"))
    allocation = SlurmAllocation()
    supervisor = Supervisor(plan, folder, hold, partial(SlurmHosts, allocation), allocation)
    supervisor.run()
    if not supervisor.comes_again:
        folder.whole_plan.unlink(missing_ok=True)
    return 0
