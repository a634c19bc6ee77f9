"""Where suites and examples run: how many ranks, and whether their hosts are processes or containers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from estimator_sdk import Estimator, Job, JobFailed

ROOT = Path(__file__).parents[3]
JOB_SECONDS = 7200


@dataclass(frozen=True)
class World:
    """The ranks of a job. Processes share one host; containers are two hosts with half of the ranks each."""

    ranks: int
    backend: Literal["process", "docker"] = "process"
    image: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, code: Path, words: Sequence[str]) -> Job:
        """Run `python WORDS` in a code folder on all ranks. Returns the job when it has ended, in whatever way."""
        hosts = 2 if self.backend == "docker" else 1
        estimator = Estimator(
            command=["python", *words],
            source_dir=code,
            image_uri=self.image,
            instance_count=hosts,
            distribution={"mpi": {"enabled": True, "processes_per_host": self.ranks // hosts}},
            environment={"TF_CPP_MIN_LOG_LEVEL": "3", **self.environment},
            max_run=JOB_SECONDS,
            backend=self.backend,
        )
        job = estimator.fit(wait=False, logs="none")
        try:
            job.wait()
        except JobFailed as failed:
            print(failed)
        return job


def lines(job: Job, rank: int, mark: str) -> list[str]:
    """What a rank printed after a mark, line by line."""
    text = b"".join(line.data for line in job.logs(rank=rank, stream="stdout")).decode("utf-8", "replace")
    return [line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)]


def install(packages: Sequence[str], folder: Path, *options: str) -> None:
    """Put packages into a code folder, so that every host has them."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([*pip, *options, *packages], check=True)
