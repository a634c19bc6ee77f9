"""Kill ranks that read data, at random moments, and look whether each sample was trained on once.

    python -m tests.chaos.data_kills --kills 200 [--workers 2] [--seed S] [--store localstack]

With a store, the shards and the checkpoints are in it, else in a folder.
What counts is what the newest checkpoint has at the end: what was trained on and lost with a rank is trained on again.
Ends with 1 when a sample is missing or was there twice.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tarfile
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.storage import open_store

from estimator_sdk import Estimator, Job
from estimator_sdk.spec.restart_policy import restartable

from . import reader
from .playing import own_folders

if TYPE_CHECKING:
    from tests.stores.servers import Server

SCRIPT = Path(reader.__file__)
SIZES = (5, 1, 19, 3, 0, 27, 11)
"""Of the shards, in samples."""
SAMPLES_A_KILL = 200
"""No more are trained on between two kills, however late these come on a busy machine."""


@contextlib.contextmanager
def own_server(kind: str) -> Iterator[Server]:
    """A store of that kind, for as long as the block."""
    from tests.stores import servers

    with (
        tempfile.TemporaryDirectory(prefix="store-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        servers.started(kind, lambda name: Path(folder)) as server,
    ):
        yield server


def place_in(server: Server) -> str:
    """A prefix of its own in a store, which jobs find from now on by the environment."""
    from tests.stores.servers import BUCKET

    os.environ.update(server.environment())
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def make_shards(uri: str) -> None:
    """Shards as uneven as they come below a URI, each sample with a number of its own."""
    numbers = iter(range(sum(SIZES)))
    with tempfile.TemporaryDirectory() as folder:
        for shard, size in enumerate(SIZES):
            path = Path(folder, f"{shard}.tar")
            with tarfile.open(path, "w") as tar:
                for each in (next(numbers) for _ in range(size)):
                    member = tarfile.TarInfo(f"{each}.txt")
                    member.size = len(str(each))
                    tar.addfile(member, io.BytesIO(str(each).encode()))
            open_store(f"{uri}/data").upload(str(path), path.name)


def train(uri: str, kills: int, workers: int, seed: int) -> Job:
    """A job of two ranks that is killed so often, to its end; its checkpoints are beside the shards."""
    return Estimator(
        entry_point=SCRIPT,
        backend="process",
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        hyperparameters={
            "data": f"{uri}/data",
            "epochs": 2 + kills * SAMPLES_A_KILL // sum(SIZES),
            "workers": workers,
            "kills": kills,
            "seed": seed,
        },
        checkpoint_s3_uri=f"{uri}/checkpoints",
        restart_policy={"on": restartable(), "max": 2 * kills + 1},
        base_job_name="data-kills",
        stop_timeout=2,
    ).fit(logs="none")


def problems(job: Job, kills: int, folder: Path) -> list[str]:
    """What is not as it should be."""
    seen = json.loads((job.download(folder) / reader.MODEL).read_text())
    found = []
    if len(job.attempts) <= kills:
        found.append(f"{len(job.attempts)} attempts, no more than the {kills} that were killed")
    by_epoch: list[Counter[int]] = [Counter() for _ in range(1 + max(epoch for epoch, _ in seen))]
    for epoch, batch in seen:
        by_epoch[epoch].update(batch)
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
    parser.add_argument("--store", choices=["localstack", "ceph"], help="started for it; by default a folder")
    settings = parser.parse_args()
    print(f"seed {settings.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(own_server(settings.store)) if settings.store else None
        folder = stack.enter_context(own_folders())
        uri = place_in(server) if server else f"file://{folder}/store"
        make_shards(uri)
        began = time.monotonic()
        job = train(uri, settings.kills, settings.workers, settings.seed)
        found = problems(job, settings.kills, folder / "model")
    print(f"{settings.kills} kills in {time.monotonic() - began:.0f} s: {'; '.join(found) or 'each sample once'}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
