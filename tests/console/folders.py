"""Folders of jobs as their supervisors leave them, made in no time: the console reads nothing else."""

from __future__ import annotations

import json
import time
from pathlib import Path

from estimator_container.contract import events
from estimator_container.contract.names import Layout
from estimator_container.logs.frames import EVENT, NO_RANK, FrameWriter

from estimator_sdk.backends.status import AttemptRecord, Status
from estimator_sdk.backends.supervised.job_folder.record import Record, write_record
from estimator_sdk.values.home import JobFolder, secured


def make_job(
    home: Path,
    name: str,
    status: Status = "Completed",
    hosts: int = 1,
    created: float | None = None,
    backend: str = "process",
) -> JobFolder:
    """The folder of a job that has ended."""
    folder = JobFolder(secured(home / ("jobs" if backend == "process" else backend)) / name)
    folder.path.mkdir(mode=0o700)
    began = time.time() - 60 if created is None else created
    names = tuple(f"algo-{number}" for number in range(1, hosts + 1))
    for host in names:
        Path(Layout(str(folder.host(host))).frames).parent.mkdir(parents=True)
    attempts = (AttemptRecord(1, began, began + 30),)
    write_record(Record(name, status, backend, names, began, attempts, began + 30), folder)
    folder.request.write_text(json.dumps({"TrainingJobName": name}))
    folder.plan.write_text("a plan\n")
    return folder


def writer(folder: JobFolder, host: str = "algo-1") -> FrameWriter:
    """What appends to the log of a host."""
    return FrameWriter(Layout(str(folder.host(host))).frames)


def tell_of_training(frames: FrameWriter, ranks: int = 2, begin: float | None = None) -> None:
    """A host tells of a phase, of ranks that train, the last one at half the speed, and that they stand still."""
    began = time.time() - 60 if begin is None else begin
    numbers = list(range(ranks))
    tell(frames, events.PhaseStarted("world"))
    for rank in numbers:
        tell(frames, events.RankStarted(rank))
    tell(frames, events.PhaseEnded("world", 1.0))
    for steps in range(1, 50):
        last = [began + 0.5 * steps * (2 if rank == ranks - 1 else 1) for rank in numbers]
        told = events.TrainingSteps(numbers, [steps] * ranks, [steps] * ranks, [began] * ranks, last)
        tell(frames, told)
        seconds, waits = [0.5 * steps] * ranks, [0.2 * steps] * ranks
        nothing = [0.0] * ranks
        pids = [100 + rank for rank in numbers]
        tell(frames, events.StepTimes(numbers, pids, [steps] * ranks, seconds, waits, nothing, nothing, nothing))
    groups = [
        {"ranks": [{"host": "algo-1", "rank": rank} for rank in numbers[:-1]], "stack": STACKS[0]},
        {"ranks": [{"host": "algo-1", "rank": numbers[-1]}], "stack": STACKS[1]},
    ]
    tell(frames, events.RanksStand(31.0, "a rank is missing", {"groups": groups}))


STACKS = ('  File "train.py", line 41 in train_step\n', '  File "train.py", line 52 in <b>evaluate</b>\n')
"""Where the ranks stand that `tell_of_training` tells of: the last one, and the others."""


def tell(frames: FrameWriter, event: events.Event) -> None:
    """A host tells that now."""
    frames.write(NO_RANK, EVENT, event.to_json().encode())
