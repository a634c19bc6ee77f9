"""Which samples a rank gets, in which order, and what is left of an epoch: arithmetic, and nothing else.

The samples of an epoch are numbered in the order in which they are due; every rank gets one stretch of what is left of
them. All ranks make the same number of steps, and everybody can say what each has had after so many of them.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Interval = tuple[int, int]
"""From the first number up to, not including, the second."""


class SamplePlace(NamedTuple):
    """Where a sample is."""

    shard: int
    """The number of the shard in the order of the names."""
    sample: int
    """The number of the sample in that shard."""


@dataclass(frozen=True)
class Division:
    """How the samples of `left` are divided among ranks, and the part of each into batches."""

    left: tuple[Interval, ...]
    """The numbers of the samples that nobody has had yet, in ascending order and apart."""
    world_size: int
    batch_size: int
    """The most samples of a batch; only a world that divides single samples unevenly gives one batch more than that."""

    @property
    def steps(self) -> int:
        """The batches of each rank: as many for all, so that none waits for a step that another does not make."""
        most, least = -(-self._total // self.world_size), self._total // self.world_size
        return max(min(1, most), min(-(-most // self.batch_size), least))

    def batch(self, rank: int, step: int) -> list[int]:
        """The numbers of the samples that a rank gets in a step."""
        start, end = self._part(rank)
        size, steps = end - start, self.steps
        return self._numbers(start + size * step // steps, start + size * (step + 1) // steps)

    def left_after(self, steps: int) -> tuple[Interval, ...]:
        """What nobody has had once every rank has made so many steps."""
        found: list[Interval] = []
        for rank in range(self.world_size):
            start, end = self._part(rank)
            for first, last in self._cut(start + (end - start) * steps // max(1, self.steps), end):
                joins = found and found[-1][1] == first
                found.append((found.pop()[0] if joins else first, last))
        return tuple(found)

    @property
    def _total(self) -> int:
        return sum(end - start for start, end in self.left)

    def _part(self, rank: int) -> Interval:
        """The stretch of a rank, in numbers that count what is left without its holes."""
        return self._total * rank // self.world_size, self._total * (rank + 1) // self.world_size

    def _cut(self, start: int, end: int) -> list[Interval]:
        """A stretch of what is left, as the intervals that it covers."""
        found, before = [], 0
        for first, last in self.left:
            low, high = max(start, before), min(end, before + last - first)
            if low < high:
                found.append((first + low - before, first + high - before))
            before += last - first
        return found

    def _numbers(self, start: int, end: int) -> list[int]:
        return [number for first, last in self._cut(start, end) for number in range(first, last)]


class EpochOrder:
    """The order of all samples in one epoch.

    With a seed the shards are shuffled, and then the samples of each group of neighbours together, so that no more
    than `together` shards are needed at once. Without one, the samples come as they lie.
    """

    def __init__(self, sizes: Sequence[int], seed: int | None, epoch: int, together: int) -> None:
        """`sizes` are the numbers of the samples of the shards."""
        shards = list(range(len(sizes)))
        self._chance = None if seed is None else f"{seed}/{epoch}"
        if self._chance is not None:
            random.Random(self._chance).shuffle(shards)
        step = 1 if seed is None else together
        self._sizes = sizes
        self._groups = [shards[at : at + step] for at in range(0, len(shards), step)]
        counts = (sum(sizes[shard] for shard in group) for group in self._groups)
        self._starts = list(itertools.accumulate(counts, initial=0))
        self._known: tuple[int, list[SamplePlace]] = (-1, [])

    def group_of(self, number: int) -> int:
        """The group of shards that the sample with this number is in."""
        return bisect.bisect_right(self._starts, number) - 1

    def shards(self, group: int) -> Sequence[int]:
        """The shards of a group; none for one that there is not."""
        return self._groups[group] if group < len(self._groups) else ()

    def place(self, number: int) -> SamplePlace:
        """Where the sample with this number is."""
        group = self.group_of(number)
        if self._known[0] != group:
            self._known = group, self._places(group)
        return self._known[1][number - self._starts[group]]

    def _places(self, group: int) -> list[SamplePlace]:
        found = [SamplePlace(shard, sample) for shard in self._groups[group] for sample in range(self._sizes[shard])]
        if self._chance is not None:
            random.Random(f"{self._chance}/{group}").shuffle(found)
        return found
