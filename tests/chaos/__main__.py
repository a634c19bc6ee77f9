"""Aim a fault at a job that runs on this machine, and say what a right verdict on it is.

python -m tests.chaos JOB FAULT [--rank R | --host H] [--heal-after SECONDS]
python -m tests.chaos --list
"""

from __future__ import annotations

import argparse
import sys
import time

from estimator_sdk import EstimatorError, Job

from .faults import FAULTS, Shape, Target
from .running import NotThere, RunningJob


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Aim a fault at a job that runs on this machine."
    )
    parser.add_argument("job", nargs="?", help="the job's name; ESTIMATOR_HOME says where jobs are, as always")
    parser.add_argument("fault", nargs="?", choices=FAULTS)
    parser.add_argument("--list", action="store_true", help="say what faults there are")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--rank", type=int, help="what to aim at; the first of the host, or of all, without it")
    chosen.add_argument("--host", help="such as algo-2")
    parser.add_argument("--heal-after", type=float, metavar="SECONDS", help="undo the fault after that time")
    settings = parser.parse_args()
    if settings.list:
        for name, fault in FAULTS.items():
            needs = f" (needs {', '.join(sorted(fault.needs))})" if fault.needs else ""
            print(f"{name:16} {fault.says}{needs}")
        return 0
    if settings.job is None or settings.fault is None:
        parser.error("name a job and a fault, or ask for --list")
    try:
        running = RunningJob(Job.attach(settings.job))
        target = aim(running, settings.rank, settings.host)
        fault = FAULTS[settings.fault]
        if not fault.fits(target.shape, limited=True):
            parser.error(f"{settings.fault} needs {', '.join(sorted(fault.needs))}, and {settings.job} is not so")
        truth = fault.strike(running, target)
        print(f"{time.time():.3f} {settings.fault}: {truth}", flush=True)
        if settings.heal_after is not None and fault.heal is not None:
            time.sleep(settings.heal_after)
            fault.heal(running, target)
            print(f"{time.time():.3f} healed")
    except (EstimatorError, NotThere) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def aim(running: RunningJob, rank: int | None, host: str | None) -> Target:
    """What a rank or a host of a job means. Raises NotThere if it does not run."""
    ranks = running.ranks()
    hosts = sorted(running.toolkits())
    if host is not None and host not in hosts:
        raise NotThere(f"{host} does not run; these do: {', '.join(hosts) or 'none'}")
    in_world = {each.number for each in ranks} != {None} and bool(ranks)
    per_host = max(sum(each.host == one for each in ranks) for one in hosts) if in_world else None
    shape = Shape(running.backend, len(hosts), per_host)
    number = rank if rank is not None else hosts.index(host or hosts[0]) * (per_host or 1) if hosts else 0
    if number not in shape.ranks:
        raise NotThere(f"rank {number} does not run; the job has {len(shape.ranks)}")
    return Target(shape, number)


if __name__ == "__main__":
    sys.exit(main())
