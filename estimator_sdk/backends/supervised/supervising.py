"""The program that supervises a job of this machine."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ...plan.plan import Plan
from ...values.home import JobFolder
from .job_folder.hold import Hold
from .supervisor.hosts import HostsFactory
from .supervisor.supervisor import Supervisor


def main(argv: list[str], find_factory: Callable[[str], HostsFactory]) -> int:
    """Run the job in the folder `argv[0]`; the plan comes on standard input, so no file holds its secrets."""
    folder = JobFolder(Path(argv[0]))
    hold = Hold(folder)
    try:
        plan = Plan.from_json(sys.stdin.read())
    except ValueError:
        print("its client ended before it had passed on the plan", file=sys.stderr)
        hold.check()
        if not folder.record.exists():
            shutil.rmtree(folder.path, ignore_errors=True)  # nothing of a job that never was, not even its name
        return 1
    supervisor = Supervisor(plan, folder, hold, find_factory(plan.backend))
    gc.freeze()  # what there is now, stays
    gc.enable()
    supervisor.run()
    return 0
