"""A data set that the ranks of a job divide among themselves, and continue to read where they were."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .checks import check_count_of_epochs, check_counts, check_functions, whole
from .errors import DataError
from .order import EpochOrder
from .position import Position
from .reading import shards
from .reading.ahead import Ahead, CountedWaiting, size_of
from .reading.disk_cache import DiskCache
from .reading.formats import Sample
from .reading.reader import Reader, count_samples

Batch = Any
"""A list of samples, or what `collate` makes of one."""
T = TypeVar("T")

MEMORY = 256 << 20
DISK = 4 << 30


class Dataset(CountedWaiting):
    """The shards of a channel, a folder or a URI, divided among the ranks of the job.

    Iterating over it gives the batches of this rank from the present position to the end of the epoch. In an epoch each
    sample goes to exactly one rank, once, and all ranks get as many batches. See docs/data.md.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        batch_size: int,
        seed: int | None = None,
        decode: Callable[[Sample], Sample] | None = None,
        collate: Callable[[list[Sample]], Batch] | None = None,
        pattern: str | None = None,
        format: str | None = None,
        together: int = 4,
        prefetch: int = 2,
        memory: int = MEMORY,
        disk: int = DISK,
        cache_folder: str | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        """`source` is the name of a channel, a path, or a URI `s3://` or `file://` of a folder.

        `batch_size` is the most samples that a rank gets in a step, or one more where it is 1. With a `seed` the order
        is another one in each epoch, and the samples of `together` shards are mixed. `decode` is applied to each sample
        and `collate` to each batch that is not empty, in the thread or the DataLoader's worker that reads. `pattern`
        chooses shards by name, as '*.tar'; `format` is told by their names. At most `prefetch` batches and `memory`
        bytes are read ahead; at most `disk` bytes are kept of a store, in `cache_folder` or one for the time being.
        `rank` and `world_size` are those of the job. Raises DataError and StorageError.
        """
        check_counts(batch_size=batch_size, together=together, prefetch=prefetch, memory=memory, disk=disk)
        check_functions(decode=decode, collate=collate)
        if seed is not None:
            seed = whole("seed", seed)
        name = _name_of(source)
        place = shards.source_of(name)
        self.rank, self.world_size = _world(name, rank, world_size)
        self._cache = None if place.is_at_hand else DiskCache(place.uri, disk, cache_folder)
        self._shards = shards.find(place, pattern, format, functools.partial(count_samples, place, self._cache))
        self._seed, self._together = seed, together
        self._decode, self._collate = decode, collate
        self._prefetch, self._memory = prefetch, memory
        self._batch_size = batch_size
        if len(self) < self.world_size:
            raise DataError(
                f"{place.uri} has {len(self)} samples, fewer than the {self.world_size} ranks that divide them: "
                "use fewer ranks"
            )
        self._position = Position(0, 0, ((0, len(self)),), self.world_size, batch_size)

    def __len__(self) -> int:
        """The samples of an epoch, of all ranks together."""
        return sum(self._shards.samples)

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of; the first is 0."""
        return self._present().epoch

    @property
    def steps_left(self) -> int:
        """The batches that each rank still gets in this epoch."""
        present = self._present()
        return present.division.steps - present.step

    def epochs(self, count: float) -> Iterator[int]:
        """The numbers of the epochs, of so many, that are not over yet; what a loop leaves of one is passed over.

        `math.inf` is for a loop that ends itself. Raises DataError for a count that is not a number.
        """
        check_count_of_epochs(count)
        while self.epoch < count:
            epoch = self.epoch
            yield epoch
            if self.epoch == epoch:
                self._position = Position(epoch + 1, 0, ((0, len(self)),), self.world_size, self._batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """The batches from the present position to the end of the epoch, read ahead in a thread."""
        ahead = Ahead(self.read(), self._prefetch, self._memory, size_of)
        try:
            yield from self.counted(ahead)
        finally:
            ahead.close()

    def counted(self, batches: Iterable[T]) -> Iterator[T]:
        """The same batches, as torch's DataLoader or a tf.data pipeline brings them, each counted when it is taken.

        Whatever was read ahead is not counted. Raises DataError for a loader that would not keep the order.
        """
        _check_order(batches)
        for batch in self.waited(batches, self.steps_left):
            self.consumed()
            yield batch

    def consumed(self) -> None:
        """Say that the script has taken one more batch, where neither this object nor `counted` sees that."""
        present = self._present()
        self._position = Position(present.epoch, present.step + 1, *_division_of(present))

    def read(self, first: int = 0, stride: int = 1) -> Iterator[Batch]:
        """The batches from the present position on without counting them: the first, and each `stride`th after it.

        For adapters, which have several readers side by side.
        """
        present = self._present()
        order = EpochOrder(self._shards.samples, self._seed, present.epoch, self._together)
        division = present.division
        steps = range(present.step + first, division.steps, stride)
        reader = Reader(self._shards, self._cache, order)
        return map(self._made, reader.batches(division.batch(self.rank, step) for step in steps))

    def state_dict(self) -> dict[str, Any]:
        """The position, to be kept in the checkpoint of the same step; JSON can hold it.

        Every batch that the script has taken counts as used. In synchronous training all ranks are at the same step, so
        that what one of them keeps is good for all.
        """
        return self._position.to_state(self._identity())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where that was; also with another number of ranks, or another batch size.

        Raises DataError for a position in other data, or in another order of them.
        """
        self._position = Position.from_state(state, self._identity())

    def _made(self, samples: list[Sample]) -> Batch:
        """A batch of what the shards hold."""
        decoded = samples if self._decode is None else [self._decode(each) for each in samples]
        return decoded if self._collate is None or not decoded else self._collate(decoded)

    def _identity(self) -> dict[str, object]:
        return {"seed": self._seed, "together": self._together, "shards": self._shards.fingerprint}

    def _present(self) -> Position:
        """The position, at the begin of the next epoch if this one is over."""
        return self._position.divided_anew(len(self), self.world_size, self._batch_size)


def _division_of(position: Position) -> tuple[Any, ...]:
    return position.left, position.world_size, position.batch_size


def _name_of(source: object) -> str:
    if isinstance(source, str):
        return source
    if isinstance(source, os.PathLike):
        return os.path.abspath(os.fsdecode(source))
    raise DataError(f"source is {source!r}: give the name of a channel, a path or a URI")


def _world(source: str, rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Which rank this is, of how many. Raises DataError where they do not all see the same data."""
    if (rank is None) != (world_size is None):
        raise DataError("rank and world_size belong together: give both, or neither for those of the job")
    if rank is None or world_size is None:
        rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        has_share = shards.channel_settings(source).get("S3DistributionType") == "ShardedByS3Key"
        if has_share and world_size > int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
            raise DataError(
                f"the channel {source!r} is ShardedByS3Key, so each host has other files, and the ranks of two hosts "
                "would make different numbers of steps: leave distribution= out, since the ranks divide the samples "
                "themselves, or give rank= and world_size= within the host"
            )
    rank, world_size = whole("rank", rank), whole("world_size", world_size)
    if not 0 <= rank < world_size:
        raise DataError(f"rank is {rank!r} of {world_size!r}: give a rank from 0 to {world_size - 1}")
    return rank, world_size


def _check_order(batches: object) -> None:
    """What would bring batches in another order, or none of those after a restart."""
    if getattr(batches, "persistent_workers", False):
        fault = "persistent_workers=True: its workers would begin each epoch where the first one began"
    elif getattr(batches, "num_workers", 0) and not getattr(batches, "in_order", True):
        fault = "in_order=False: nobody could tell which batches the script has had"
    elif hasattr(batches, "num_workers") and getattr(batches, "batch_size", None) is not None:
        fault = "a batch_size: its batches would be batches of batches"
    else:
        return
    raise DataError(f"the DataLoader has {fault}; write DataLoader(TorchBatches(data), batch_size=None, num_workers=…)")
