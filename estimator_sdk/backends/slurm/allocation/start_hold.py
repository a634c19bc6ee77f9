"""The hold of a supervisor that Slurm has started, and may start again elsewhere while this one stands still."""

from __future__ import annotations

from ...supervised.job_folder.hold import Hold, NotOurs
from ..files import SlurmFolder


class StartHold(Hold):
    """A job's folder, as long as no later start of the same job has taken it over.

    A node that was frozen or cut off may come back after its job went on without it.
    """

    def __init__(self, folder: SlurmFolder, start: int) -> None:
        """`start` counts those before. Raises OSError."""
        super().__init__(folder)
        self._files = folder
        self._start = start

    def take(self) -> None:
        """Take the folder from earlier starts. Raises OSError, and NotOurs where a later one has it."""
        self.check()
        self._files.write_start(self._start)

    def check(self) -> None:
        super().check()
        if self._files.read_start() > self._start:
            raise NotOurs(f"Slurm has started the job of {self._path} again, elsewhere: what runs here ends")
