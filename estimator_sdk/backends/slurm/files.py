"""The folder of a job on Slurm, which the login node and the nodes share, and what only such a job has there."""

from __future__ import annotations

import json
from pathlib import Path

from ...values.home import JobFolder, home, regular_file, write_private
from ...values.job_name import checked

BEFORE_MODULES = "_ESTIMATOR_BEFORE_MODULES"
"""The variable in which a batch script that loads modules keeps the names of those that it had before."""


def jobs_on_slurm() -> Path:
    """The folder of all of them, which may not exist yet. Raises EstimatorError for a user without a home."""
    return home() / "slurm"


class SlurmFolder(JobFolder):
    """The files of one job."""

    @classmethod
    def for_job(cls, job_name: str) -> SlurmFolder:
        """Raises InvalidArgument for what is not a name: it may be a path."""
        return cls(jobs_on_slurm() / checked(job_name))

    @property
    def given(self) -> Path:
        """What the supervisor is given, secrets included, for this user alone: it starts later, and elsewhere.

        It is removed when the job has ended.
        """
        return self.path / "given.json"

    @property
    def stop_request(self) -> Path:
        """A file that says, beside a signal, that the job is to stop: its supervisor may not run yet."""
        return self.path / "stop"

    @property
    def forgotten(self) -> Path:
        """Made when it is seen that Slurm's controller does not know the job any more, though it may not have ended."""
        return self.path / "forgotten"

    @property
    def exported(self) -> Path:
        """Of a job that somebody submits by hand: a file with the path of the script."""
        return self.path / "exported"

    @property
    def submission(self) -> Path:
        """What Slurm calls the job."""
        return self.path / "submission.json"

    def write_number(self, number: int, cluster: str = "") -> None:
        """Keep the job's number at Slurm, and the name of the cluster where it is known. Raises OSError."""
        write_private(self.submission, json.dumps({"number": number, "cluster": cluster}))

    def read_number(self) -> int | None:
        """The job's number at Slurm; None as long as it has none, or where the file is damaged."""
        number = self._submitted().get("number")
        return number if isinstance(number, int) else None

    def read_cluster(self) -> str:
        """The name of the cluster that gave the job its number; empty where that is not known."""
        cluster = self._submitted().get("cluster")
        return cluster if isinstance(cluster, str) else ""

    def _submitted(self) -> dict[str, object]:
        try:
            with open(self.submission, encoding="utf-8", opener=regular_file) as file:
                return dict(json.load(file))
        except (OSError, ValueError, TypeError, RecursionError):
            return {}

    @property
    def _start(self) -> Path:
        """How often Slurm had started the job again when its newest supervisor began."""
        return self.path / "start"

    def write_start(self, count: int) -> None:
        """Keep which start of the job is the newest. Raises OSError."""
        written = self.path / f"start.{count}"
        write_private(written, str(count))
        # A new file, or another machine's cache might go on with what it knew of the old one.
        written.replace(self._start)

    def read_start(self) -> int:
        """Which start of the job is the newest; 0 where that cannot be read."""
        try:
            with open(self._start, encoding="utf-8", opener=regular_file) as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0
