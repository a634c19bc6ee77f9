"""Kill ranks that read data, at random moments, and look whether each sample was trained on once.

    python -m tests.chaos.data_kills --kills 200 [--workers 2] [--seed S] [--data URI]

What counts is what the newest checkpoint has at the end: what was trained on and lost with a rank is trained on again.
Ends with 1 when a sample is missing or was there twice.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

from estimator_container.storage import open_store

from estimator_sdk import Estimator, Job
from estimator_sdk.spec.restart_policy import restartable
from estimator_sdk.values.home import home

from . import reader
from .playing import own_folders

SCRIPT = Path(reader.__file__)
SIZES = (5, 1, 19, 3, 0, 27, 11)
"""Of the shards, in samples."""
SAMPLES_A_KILL = 30
"""About how many are trained on between two kills."""


def make_shards(uri: str) -> None:
    """Shards as uneven as they come, each sample with a number of its own."""
    numbers = iter(range(sum(SIZES)))
    with tempfile.TemporaryDirectory() as folder:
        for shard, size in enumerate(SIZES):
            path = Path(folder, f"{shard}.tar")
            with tarfile.open(path, "w") as tar:
                for each in (next(numbers) for _ in range(size)):
                    member = tarfile.TarInfo(f"{each}.txt")
                    member.size = len(str(each))
                    tar.addfile(member, io.BytesIO(str(each).encode()))
            open_store(uri).upload(str(path), path.name)


def train(uri: str, kills: int, workers: int, seed: int) -> Job:
    """A job of two ranks that is killed so often, to its end."""
    return Estimator(
        entry_point=SCRIPT,
        backend="process",
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        hyperparameters={
            "data": uri,
            "epochs": 2 + kills * SAMPLES_A_KILL // sum(SIZES),
            "workers": workers,
            "kills": kills,
            "seed": seed,
        },
        checkpoint_s3_uri=f"file://{home()}/store/{seed}",
        restart_policy={"on": restartable(), "max": 2 * kills + 1},
        base_job_name="data-kills",
        stop_timeout=2,
    ).fit(logs="none")


def problems(job: Job, kills: int, folder: Path) -> list[str]:
    """What is not as it should be."""
    epochs = int(json.loads(job.request["HyperParameters"]["epochs"]))
    seen = json.loads((job.download(folder) / reader.MODEL).read_text())
    found = []
    if len(job.attempts) <= kills:
        found.append(f"{len(job.attempts)} attempts, no more than the {kills} that were killed")
    by_epoch = [Counter(each for number, batch in seen if number == epoch for each in batch) for epoch in range(epochs)]
    for epoch, counts in enumerate(by_epoch):
        strange = {each: counts[each] for each in {*range(sum(SIZES)), *counts} if counts[each] != 1}
        if strange:
            found.append(f"epoch {epoch}: these samples were not there once but so often: {strange}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.data_kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--data", help="where the shards go: by default a folder")
    settings = parser.parse_args()
    print(f"seed {settings.seed}", flush=True)
    with own_folders() as folder:
        uri = settings.data or f"file://{folder}/data"
        make_shards(uri)
        began = time.monotonic()
        job = train(uri, settings.kills, settings.workers, settings.seed)
        found = problems(job, settings.kills, folder / "model")
    print(f"{settings.kills} kills in {time.monotonic() - began:.0f} s: {'; '.join(found) or 'each sample once'}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
