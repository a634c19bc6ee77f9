"""A job that runs for as long as a test looks at it, and does as it is told."""

from __future__ import annotations

import os
from contextlib import contextmanager

from estimator_sdk import Estimator, Job
from tests.console.server import wait_until

DOES_AS_TOLD = """
import os, pathlib, sys, time
from estimator_container.training import mark_step
print("up", flush=True)
number = 0
while True:
    told = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], str(number))
    if not told.exists():
        time.sleep(0.02)
        continue
    data = told.read_bytes()
    if data == b"raise":
        raise ValueError("<b>no such digit</b>")
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
    number += 1
    mark_step(number)
"""


class Told:
    """A job that writes what it is told to."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._count = 0

    def write(self, data: bytes) -> None:
        folder = self.job.folder / "hosts" / "algo-1" / "output" / "data"
        draft = folder / "draft"
        draft.write_bytes(data)
        draft.rename(folder / str(self._count))
        self._count += 1


@contextmanager
def started(home, folder):
    """A job that runs until the block ends."""
    script = folder / "train.py"
    script.write_text(DOES_AS_TOLD)
    before = os.environ.get("ESTIMATOR_HOME")
    os.environ["ESTIMATOR_HOME"] = str(home)
    try:
        job = Estimator(entry_point=str(script), backend="process").fit(wait=False, logs="none")
        try:
            yield Told(job)
        finally:
            job.stop()
            wait_until(lambda: job.status in ("Stopped", "Failed", "Completed"), "the job does not end")
    finally:
        os.environ.pop("ESTIMATOR_HOME")
        if before is not None:
            os.environ["ESTIMATOR_HOME"] = before
