"""What a rank tells of its weights: a few numbers of a few variables after one step."""

from __future__ import annotations

import struct
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
    """Horovod was initialised on all ranks, and this rank was not seen to average any gradient."""
    FREE = "free"
    """Nothing asks for it: ranks may differ, and the job goes on."""


class Sample(NamedTuple):
    """Some numbers of one variable."""

    name: str
    dtype: str
    """One of `PRECISIONS`."""
    values: tuple[float, ...]


class WeightReport(NamedTuple):
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
        numbers = " ".join(map(str, (self.rank, self.start, self.step)))
        names, dtypes, values = zip(*self.samples)
        packed = " ".join(_packed(each).hex() for each in values)
        ranks = " ".join(map(str, self.ranks))
        warns = "warn" if self.only_warns else ""
        return [numbers, self.training, self.standing.value, warns, ranks, "\n".join(names), " ".join(dtypes), packed]

    @classmethod
    def from_fields(cls, fields: Sequence[str]) -> WeightReport:
        """The way back from `to_fields`. Raises ValueError for anything else."""
        numbers, training, standing, warns, ranks, names, dtypes, packed = fields
        rank, start, step = map(int, numbers.split())
        columns = (names.split("\n"), dtypes.split(), [_unpacked(each) for each in packed.split()])
        if len({len(column) for column in columns}) > 1 or not PRECISIONS.keys() >= set(columns[1]):
            raise ValueError("a sample is a name, a type and values")
        samples = tuple(Sample(*each) for each in zip(*columns))
        members = tuple(map(int, ranks.split()))
        return cls(rank, training, start, step, Standing(standing), bool(warns), members, samples)


def _packed(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def _unpacked(text: str) -> tuple[float, ...]:
    data = bytes.fromhex(text)
    if len(data) % 8:
        raise ValueError("a number has 8 bytes")
    return struct.unpack(f"<{len(data) // 8}d", data)
