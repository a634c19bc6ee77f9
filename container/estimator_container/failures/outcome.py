"""How a host ends, and what it leaves for the platform to read."""

from __future__ import annotations

import contextlib
import os
from typing import Literal, NamedTuple

from ..contract.names import EXIT_FRAMEWORK_ERROR, EXIT_OK, EXIT_STOPPED, EXIT_USER_FAILURE, Layout
from ..runtime import private_folder, reserve
from .verdict import Verdict

# When MPI itself ends the world, the report of the rank that made it do so may still be on its way.
CULPRIT_SECONDS = 0.3
# After mpirun's own end, or that of a rank which another one has left, those of ranks on other hosts may be, too.
LAST_REPORTS_SECONDS = 2.0
# After mpirun has ended well all its ranks have, and nothing is wrong with a host that is slow to say so: one that is
# gone, or stands still, is missed before.
GOOD_REPORTS_SECONDS = 60.0
# Within which a scheduler that has signalled one process has signalled every process of every host.
SCHEDULER_SECONDS = 1.0


class Outcome(NamedTuple):
    """The end of the job, the same on every host."""

    kind: Literal["completed", "failed", "stopped"]
    verdict: Verdict | None = None
    """Why it failed; None otherwise."""

    @property
    def exit_code(self) -> int:
        """What the toolkit tells the platform: 0, 1 for the user's failures, 2 for others, 143 when stopped."""
        if self.kind == "completed":
            return EXIT_OK
        if self.kind == "stopped":
            return EXIT_STOPPED
        return EXIT_USER_FAILURE if self.verdict and self.verdict.is_user_failure else EXIT_FRAMEWORK_ERROR

    def write(self, layout: Layout) -> None:
        """Leave the marker of success, or the failure for people and for programs.

        A failure file that the script itself wrote is kept. Nothing is left where somebody has removed the base
        directory: another job may have its name by now.
        """
        try:
            private_folder.make_below(layout.output)
        except FileNotFoundError:
            return
        if self.verdict is not None:
            kept = self.verdict.masked()
            reserve.become(layout.reserve, layout.verdict, kept.to_json().encode("utf-8", "replace"))
            if not os.path.exists(layout.failure):
                with contextlib.suppress(OSError):  # the verdict, which says the same, is there
                    _write(layout.failure, kept.failure_text())
        else:
            reserve.release(layout.reserve)
            if self.kind == "completed":
                _write(layout.success, "")

    def to_fields(self) -> tuple[str, str]:
        """The outcome as two fields of a message: its kind and its verdict in JSON, or an empty string."""
        return self.kind, self.verdict.to_json() if self.verdict else ""

    @classmethod
    def from_fields(cls, kind: str, verdict: str) -> Outcome:
        """The way back from `to_fields`. Raises ValueError for anything else."""
        if kind == "completed":
            return cls("completed")
        if kind == "stopped":
            return cls("stopped")
        if kind == "failed":
            return cls("failed", Verdict.from_json(verdict))
        raise ValueError(f"not a way to end: {kind!r}")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
