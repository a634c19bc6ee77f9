"""Takes steps of a tenth of a second for ever, keeps a checkpoint every five seconds, and goes on from the newest.

Rank 0 says each step, every rank its number and process. `--folder` has the checkpoint. A rank that gets SIGUSR1 hangs:
it waits for a lock that nobody gives back.
"""

import argparse
import os
import signal
import threading
import time
from pathlib import Path

import torch.distributed

STEP_SECONDS = 0.1
STEPS_BETWEEN_CHECKPOINTS = 50


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


parser = argparse.ArgumentParser()
parser.add_argument("--folder", type=Path, default=Path(os.environ.get("SM_CHECKPOINT_DIR", ".")))
checkpoint = parser.parse_args().folder / "step"
lock = threading.Lock()
lock.acquire()
signal.signal(signal.SIGUSR1, lambda signum, frame: lock.acquire())
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
step = torch.tensor([int(checkpoint.read_text()) if checkpoint.exists() else 0])
torch.distributed.broadcast(step, 0)
say("up", rank, os.getpid())
while True:
    torch.distributed.all_reduce(torch.ones(1))
    time.sleep(STEP_SECONDS)
    step += 1
    if rank == 0:
        say("step", int(step))
        if int(step) % STEPS_BETWEEN_CHECKPOINTS == 0:
            draft = checkpoint.with_suffix(".new")
            draft.write_text(str(int(step)))
            draft.rename(checkpoint)
