"""Where the SDK keeps jobs and code bundles on the user's machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "ESTIMATOR_HOME"
_JOBS = "jobs"
_STATE = "state.db"


def home() -> Path:
    """`$ESTIMATOR_HOME`, else a folder in the user's data directory (XDG Base Directory Specification)."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "estimator-sdk"


def cache_folder() -> Path:
    """What can be made again, in the user's cache; `build_horovod.py`, which stands alone, has its `wheels` there."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "estimator-sdk"


def jobs_folder() -> Path:
    return home() / _JOBS


def state_file() -> Path:
    """The database of all jobs."""
    return home() / _STATE


def jobs_of(state: Path) -> Path:
    """The folder of the jobs whose state is in that database."""
    return state.with_name(_JOBS)


def bundles_folder() -> Path:
    """Code bundles, each under the hash of its bytes."""
    return home() / "code"


@dataclass(frozen=True)
class JobFolder:
    """The files of one local job. Every path of a job is made here."""

    path: Path

    @classmethod
    def of(cls, job_name: str) -> JobFolder:
        return cls(jobs_folder() / job_name)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def state(self) -> Path:
        """The database that has the job's state and that of all others."""
        return self.path.parents[1] / _STATE

    @property
    def record(self) -> Path:
        """A copy of the job's state, replaced as a whole after it has changed."""
        return self.path / "record.json"

    @property
    def plan(self) -> Path:
        """What runs, for people; secrets are left out."""
        return self.path / "plan.txt"

    @property
    def request(self) -> Path:
        """The job as a CreateTrainingJob document; secrets are left out."""
        return self.path / "request.json"

    @property
    def reserve(self) -> Path:
        """Room for the last change of `state` and `record` on a disk that the job fills up."""
        return self.path / "reserve"

    @property
    def supervisor_log(self) -> Path:
        return self.path / "supervisor.log"

    @property
    def output(self) -> Path:
        """The default output path of the job."""
        return self.path / "output"

    def channel(self, name: str) -> Path:
        """What was fetched of a channel, as long as the job runs."""
        return self.channels / name

    @property
    def channels(self) -> Path:
        return self.path / "channels"

    def attempt(self, number: int) -> Path:
        return self.path / "attempts" / str(number)

    def host(self, attempt: int, host: str) -> Path:
        """The base directory of one host, which takes the place of `/opt/ml`."""
        return self.attempt(attempt) / host

    def overlay(self, attempt: int) -> Path:
        """The virtual environment that the hosts of an attempt share, if the code has requirements."""
        return self.attempt(attempt) / "environment"
