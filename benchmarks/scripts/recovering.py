"""Ranks that take steps until they are hurt; those of the second attempt end after their first step.

Says when each rank is in its first line, has what it imports and is in its world, and has taken its first step, in
seconds since 1970. `--begun` is a file that the first attempt makes. A rank that gets SIGUSR1 hangs.
"""

import argparse
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def world_of(framework: str) -> tuple[int, Callable[[], None], Callable[[], None]]:
    """The rank, what takes a step, and what leaves the world."""
    if framework == "mpi":
        from mpi4py import MPI

        return MPI.COMM_WORLD.rank, lambda: MPI.COMM_WORLD.allreduce(1), lambda: None  # MPI does so at exit
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    ones = torch.ones(1)
    rank = torch.distributed.get_rank()
    return rank, lambda: torch.distributed.all_reduce(ones), torch.distributed.destroy_process_group


parser = argparse.ArgumentParser()
parser.add_argument("--framework", choices=("mpi", "torch"), required=True)
parser.add_argument("--begun", type=Path, default=Path(os.environ.get("SM_CHECKPOINT_DIR", "."), "begun"))
settings = parser.parse_args()
is_second = settings.begun.exists()
attempt = int(is_second) + 1
say("main", attempt, time.time())
rank, step, leave = world_of(settings.framework)
say("imported", attempt, time.time())
step()
say("step", attempt, rank, time.time())
if not is_second:
    if rank == 0:
        settings.begun.touch()
    step()
    signal.signal(signal.SIGUSR1, lambda signum, frame: time.sleep(3600))
    say("up", rank, os.getpid())
    while True:
        step()
        time.sleep(0.01)
leave()
