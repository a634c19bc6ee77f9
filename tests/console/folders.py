"""Folders of jobs as their supervisors leave them, made in no time: the console reads nothing else."""

from __future__ import annotations

import json
import time
from pathlib import Path

from estimator_container.contract.names import Layout
from estimator_container.logs.frames import FrameWriter

from estimator_sdk.backends.status import AttemptRecord, Status
from estimator_sdk.backends.supervised.job_folder.record import Record, write_record
from estimator_sdk.values.home import JobFolder, secured


def make_job(
    home: Path, name: str, status: Status = "Completed", hosts: int = 1, created: float | None = None
) -> JobFolder:
    """The folder of a job that has ended."""
    folder = JobFolder(secured(home / "jobs") / name)
    folder.path.mkdir(mode=0o700)
    began = time.time() - 60 if created is None else created
    names = tuple(f"algo-{number}" for number in range(1, hosts + 1))
    for host in names:
        Path(Layout(str(folder.host(host))).frames).parent.mkdir(parents=True)
    attempts = (AttemptRecord(1, began, began + 30),)
    write_record(Record(name, status, "process", names, began, attempts, began + 30), folder)
    folder.request.write_text(json.dumps({"TrainingJobName": name}))
    folder.plan.write_text("a plan\n")
    return folder


def writer(folder: JobFolder, host: str = "algo-1") -> FrameWriter:
    """What appends to the log of a host."""
    return FrameWriter(Layout(str(folder.host(host))).frames)
