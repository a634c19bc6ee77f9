"""What a rank tells of its weights: a few numbers of a few variables after one step."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

PRECISIONS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Type of a weight -> the distance from 1 to the next number; variables of other types are not compared."""


class Standing(Enum):
    """Why a rank takes it that all are to have the same weights."""

    AVERAGED = "averaged"
    """Their gradients are averaged."""
    ASKED = "asked"
    """Horovod was initialised on all ranks, and this rank averages no gradient at all."""
    FREE = "free"
    """Nothing asks for it: ranks may differ, and the job goes on."""


class Sample(NamedTuple):
    """Some numbers of one variable."""

    name: str
    dtype: str
    """One of `PRECISIONS`."""
    values: tuple[float, ...]


class Look(NamedTuple):
    """The weights of one rank after one step of one training."""

    rank: int
    training: str
    """The same on all ranks for what ought to be the same: made of the names and shapes of all variables."""
    start: int
    """How often the counting of steps has begun anew."""
    step: int
    standing: Standing
    only_warns: bool
    """Whether the script's environment says that the job is to go on in any case."""
    ranks: tuple[int, ...]
    """Those that average with each other; empty for all."""
    samples: tuple[Sample, ...]

    def to_fields(self) -> list[str]:
        """As a message has it."""
        head = [str(self.rank), self.training, str(self.start), str(self.step), self.standing.value]
        samples = ((each.name, each.dtype, " ".join(map(repr, each.values))) for each in self.samples)
        ranks = " ".join(map(str, self.ranks))
        return [*head, "warn" if self.only_warns else "", ranks, *(field for sample in samples for field in sample)]

    @classmethod
    def from_fields(cls, fields: Sequence[str]) -> Look:
        """The way back from `to_fields`. Raises ValueError for anything else."""
        rank, training, start, step, standing, warns, ranks, *rest = fields
        if len(rest) % 3:
            raise ValueError("a sample is a name, a type and values")
        samples = tuple(
            Sample(name, dtype, tuple(map(float, values.split())))
            for name, dtype, values in zip(rest[::3], rest[1::3], rest[2::3])
            if dtype in PRECISIONS
        )
        members = tuple(map(int, ranks.split()))
        place = (int(rank), training, int(start), int(step))
        return cls(*place, Standing(standing), bool(warns), members, samples)
