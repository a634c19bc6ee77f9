"""The folder of a job on a pool, on this machine: what is known of the job here, and which machine has the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ...errors import EstimatorError
from ...values.home import JobFolder, home, regular_file, replace_private
from ...values.job_name import checked
from . import pool
from .pool import PoolHost

WAITING = "waiting"
"""Of a job's folder, there and here, the file that says for whom it waits."""


def jobs_on_pools() -> Path:
    """The folder of all of them, which may not exist yet. Raises EstimatorError for a user without a home."""
    return home() / "ssh"


def waiting_file(folder: JobFolder) -> Path:
    """Says for whom a job waits that has no machines yet."""
    return folder.path / WAITING


class Whereabouts(NamedTuple):
    """Where a job is."""

    first: PoolHost
    """The machine that has its supervisor."""
    remote: str
    """The job's folder there."""
    output: str
    """The URI below which its archives go, as it was asked for."""


class SshFolder(JobFolder):
    """The files of one job."""

    @classmethod
    def for_job(cls, job_name: str) -> SshFolder:
        """Raises InvalidArgument for what is not a name: it may be a path."""
        return cls(jobs_on_pools() / checked(job_name))

    @property
    def whereabouts(self) -> Path:
        """Where the job is."""
        return self.path / "whereabouts.json"

    @property
    def mirrored(self) -> Path:
        """What the files here were there when they were last copied."""
        return self.path / "mirrored.json"

    def write_whereabouts(self, known: Whereabouts) -> None:
        """Keep it. Raises OSError."""
        document = {"first": known.first.to_document(), "remote": known.remote, "output": known.output}
        replace_private(self.whereabouts, json.dumps(document))

    def read_whereabouts(self) -> Whereabouts | None:
        """None while the job is being started. Raises EstimatorError for what cannot be understood."""
        try:
            with open(self.whereabouts, encoding="utf-8", opener=regular_file) as file:
                known = json.load(file)
            (first,) = pool.from_document([known["first"]])
            return Whereabouts(first, str(known["remote"]), str(known["output"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError, EstimatorError) as error:
            what = f"where the job {self.name} runs cannot be read: {self.whereabouts}: {error!r}"
            raise EstimatorError(f"{what}; remove {self.path} to forget the job") from None
