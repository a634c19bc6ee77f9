"""A training script whose checkpoint says which samples it has trained on, and that is killed now and then.

Its ranks keep step. Whatever befalls it, in the end each sample of each epoch must be there once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from estimator_container.data import Dataset

STEP_SECONDS = 0.005
STEPS_BETWEEN_CHECKPOINTS = 3
BATCH_SIZE = 3
SEED = 7
MODEL = "seen.json"


def number(sample: dict[str, bytes]) -> int:
    """Of a sample; it takes as long as others take to decode theirs."""
    time.sleep(0.001)
    return int(sample["txt"])


def batches(data: Dataset, workers: int) -> Iterator[list[int]]:
    """As a DataLoader brings them: by forked processes that take turns, each some batches ahead."""
    if not workers:
        return iter(data)
    return data.counted(_turns(data, workers))


def _turns(data: Dataset, workers: int) -> Iterator[list[int]]:
    context = multiprocessing.get_context("fork")
    queues = [context.Queue(2) for _ in range(workers)]
    for worker, queue in enumerate(queues):
        context.Process(target=_work, args=(data, worker, workers, queue), daemon=True).start()
    while True:
        for queue in queues:
            batch = queue.get()
            if batch is None:
                return
            if isinstance(batch, BaseException):
                raise batch
            yield batch


def _work(data: Dataset, worker: int, workers: int, queue: multiprocessing.Queue) -> None:
    try:
        for batch in data.read(worker, workers):
            queue.put(batch)
        queue.put(None)
    except BaseException as error:
        queue.put(error)


def kill_soon(attempt: int, rank: int, seed: int) -> None:
    """Be killed at some moment, wherever that is in a step."""
    delay = random.Random(f"{seed} {attempt} {rank}").uniform(0.0, 0.15)
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, required=True, help="at most: two after the last kill are enough")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0, help="in how many attempts a rank is killed")
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    folder = Path(os.environ["SM_CHECKPOINT_DIR"])
    data = Dataset(settings.data, batch_size=BATCH_SIZE, seed=SEED, together=2, disk=100_000, decode=number)
    seen: list[tuple[int, list[int]]] = []
    attempt = 0
    found = sorted(folder.glob("step-*.json"))
    if found:
        kept = json.loads(found[-1].read_text())
        data.load_state_dict(kept["data"])
        seen, attempt = kept["seen"], kept["attempt"]
    print(
        "up", world.rank, "attempt", attempt, "from", data.state_dict()["epoch"], data.state_dict()["step"], flush=True
    )
    steps, first = 0, data.state_dict()["epoch"]
    for epoch in data.epochs(settings.epochs):
        if attempt >= settings.kills and epoch > first + 1:
            break  # nobody is killed any more
        for batch in batches(data, settings.workers):
            seen += [(epoch, each) for each in world.allgather(batch)]
            time.sleep(STEP_SECONDS)
            steps += 1
            if world.rank == 0 and steps % STEPS_BETWEEN_CHECKPOINTS == 0:
                draft = folder / ".draft"
                draft.write_text(json.dumps({"data": data.state_dict(), "seen": seen, "attempt": attempt + 1}))
                draft.rename(folder / f"step-{len(seen):06}.json")
                for each in found:
                    each.unlink(missing_ok=True)
                found = [folder / f"step-{len(seen):06}.json"]
            # In a step that rank 0 can take only with its checkpoint written: without one, the attempt is tried again.
            is_time = steps == STEPS_BETWEEN_CHECKPOINTS + 1
            if is_time and attempt < settings.kills and attempt % world.size == world.rank:
                kill_soon(attempt, world.rank, settings.seed)
    if world.rank == 0:
        Path(os.environ["SM_MODEL_DIR"], MODEL).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
