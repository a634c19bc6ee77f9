"""The stand-in of SageMaker run by itself: whatever is submitted gets instances, as on the service."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.interop.sagemaker_service.instances import Instances
from tests.interop.sagemaker_service.stand_in import IMAGE, ROLE, Platform

WHERE = {"backend": "sagemaker", "image_uri": IMAGE, "role": ROLE, "instance_type": "ml.m5.xlarge"}
LOOK_SECONDS = 0.05


@contextlib.contextmanager
def running(platform: Platform, folder: Path, python: str) -> Iterator[threading.Event]:
    """Run all jobs that are submitted until the end of the block, each as processes of this machine with that Python.

    They know of a job what DescribeTrainingJob says, and what is in S3. Jobs are looked for while the event that this
    gives is set, for other tests of the same process need the CPU.

    What looks at this process's environment is done here: a test may change it while a thread goes through it.
    """
    environment = dict(os.environ)
    for service in ("logs", "s3", "sagemaker"):
        platform.client(service)  # which is kept
    awake, closed = threading.Event(), threading.Event()
    known: set[str] = set()

    def run(name: str) -> None:
        instances = Instances(platform, name, folder / name, python=python, environment=environment)
        try:
            instances.start()
            instances.finish()
        except Exception as error:  # else whoever waits for the job would wait for ever
            platform.ends(name, "Failed", FailureReason=f"InternalServerError: {error!r}")
            raise

    def look() -> None:
        with ThreadPoolExecutor() as pool:
            client = platform.client("sagemaker")
            while awake.wait() and not closed.wait(LOOK_SECONDS):
                page = client.list_training_jobs(SortBy="CreationTime", SortOrder="Descending", MaxResults=20)
                for name in {each["TrainingJobName"] for each in page["TrainingJobSummaries"]} - known:
                    known.add(name)
                    pool.submit(run, name)

    watcher = threading.Thread(target=look)
    watcher.start()
    yield awake
    closed.set()
    awake.set()
    watcher.join()
