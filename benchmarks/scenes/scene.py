"""What a scene is: a script, the cause that is put into it, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Cause(Enum):
    """What makes a scene slow; the value is what its script calls it."""

    DECODE = "decode"
    DECODE_BY_CPU = "decode-cpu"
    STORE = "store"
    FILES = "files"
    SLOW_RANK = "slow rank"
    CPUS = "cpus"
    CHECKPOINT = "checkpoint"
    ALLREDUCE = "allreduce"
    NONE = "none"


@dataclass(frozen=True)
class Scene:
    """A job with a known cause. Times are of one step."""

    name: str
    script: str
    cause: Cause
    computing_ms: float
    cause_ms: float = 0
    steps: int = 120
    ranks: int = 1
    workers: int | None = None
    others: int | None = None

    def arguments(self, truth: Path) -> dict[str, str | float]:
        """Return what the script is given; it writes what it saw itself into `truth`."""
        given: dict[str, str | float | None] = {
            "truth": str(truth),
            "cause": self.cause.value,
            "steps": self.steps,
            "computing-ms": self.computing_ms,
            "cause-ms": self.cause_ms,
            "workers": self.workers,
            "others": self.others,
        }
        return {name: value for name, value in given.items() if value is not None}
