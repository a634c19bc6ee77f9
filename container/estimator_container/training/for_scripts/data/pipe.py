"""A channel in pipe mode: tar shards that come one after the other, read ahead of the script."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from .checks import check_count_of_epochs, check_counts, check_functions
from .dataset import MEMORY, Batch
from .errors import DataError
from .reading.ahead import Ahead, CountedWaiting, size_of
from .reading.formats import Sample, stream_tar
from .reading.shards import channel_settings

_VERSION = 1


class PipeDataset(CountedWaiting):
    """The samples of a piped channel, for one rank on each host.

    A pipe has no end that anybody knows beforehand: ranks may make numbers of steps that differ by one, and where each
    host gets its own share (ShardedByS3Key), by as much as the shares differ. See docs/data.md.
    """

    def __init__(
        self,
        channel: str,
        *,
        batch_size: int,
        decode: Callable[[Sample], Sample] | None = None,
        collate: Callable[[list[Sample]], Batch] | None = None,
        records: Callable[[BinaryIO], Iterator[Sample]] = stream_tar,
        prefetch: int = 8,
        memory: int = MEMORY,
    ) -> None:
        """`records` makes samples of what the pipe brings; without it the channel has tar shards.

        `batch_size` is the samples of a batch; the last one of an epoch may have fewer. `decode` is applied to each
        sample and `collate` to each batch, in the thread that reads. At most `prefetch` batches and `memory` bytes are
        read ahead. Raises DataError for a wrong argument, a channel that is not piped, or a host with several ranks.
        """
        check_counts(batch_size=batch_size, prefetch=prefetch, memory=memory)
        check_functions(decode=decode, collate=collate, records=records)
        settings = channel_settings(channel)
        if settings.get("TrainingInputMode") != "Pipe":
            raise DataError(f"the channel {channel!r} is not in pipe mode: use Dataset({channel!r}, …)")
        if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
            raise DataError(
                f"the channel {channel!r} is a pipe, which has one reader on each host, but this host has several "
                "ranks: use one process per host, or input_mode='File' and Dataset"
            )
        self._path = os.environ[f"SM_CHANNEL_{channel.upper()}"]
        has_share = settings.get("S3DistributionType") == "ShardedByS3Key"
        world = (0, 1) if has_share else (int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
        self._rank, self._world_size = world
        self._batch_size, self._decode, self._collate, self._records = batch_size, decode, collate, records
        self._prefetch, self._memory = prefetch, memory
        self._epoch, self._step = 0, 0
        self._next_pipe = 0

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of; the first is 0."""
        return self._epoch

    def epochs(self, count: float) -> Iterator[int]:
        """The numbers of the epochs that are not over yet, of so many. Raises DataError as that of `Dataset`."""
        check_count_of_epochs(count)
        while self._epoch < count:
            epoch = self._epoch
            yield epoch
            if self._epoch == epoch:
                self._epoch, self._step = epoch + 1, 0

    def __iter__(self) -> Iterator[Batch]:
        """The batches from the present position to the end of the epoch."""
        ahead = Ahead(self._batches(self._epoch, self._step), self._prefetch, self._memory, size_of)
        try:
            for batch in self.waited(ahead):
                self._step += 1
                yield batch
            self._epoch, self._step = self._epoch + 1, 0
        finally:
            ahead.close()

    def state_dict(self) -> dict[str, Any]:
        """The position, to be kept in the checkpoint of the same step; JSON can hold it."""
        world = self._rank_free_world()
        return {"version": _VERSION, "epoch": self._epoch, "step": self._step, **world}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where that was: what came before is read again from the pipe, and left out.

        Raises DataError for a position with another number of ranks or another batch size.
        """
        try:
            if state["version"] != _VERSION:
                raise ValueError(f"its version is {state['version']!r}, not {_VERSION}")
            epoch, step = int(state["epoch"]), int(state["step"])
            before = {name: state[name] for name in self._rank_free_world()}
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is no position in a pipe ({error}): give what state_dict() returned") from None
        for name, now in self._rank_free_world().items():
            if before[name] != now:
                raise DataError(
                    f"the position was kept with {name} {before[name]!r}, but it is {now!r} now: what a pipe "
                    "brings is divided anew only at the begin of an epoch; continue with as many"
                )
        self._epoch, self._step = epoch, step

    def _rank_free_world(self) -> dict[str, int]:
        return {"world_size": self._world_size, "batch_size": self._batch_size}

    def _batches(self, epoch: int, first: int) -> Iterator[Batch]:
        batch: list[Sample] = []
        skipped = first * self._batch_size
        with self._opened(epoch) as pipe:
            for number, sample in enumerate(self._records(pipe)):
                if number % self._world_size != self._rank:
                    continue
                if skipped:
                    skipped -= 1
                    continue
                batch.append(sample if self._decode is None else self._decode(sample))
                if len(batch) == self._batch_size:
                    yield batch if self._collate is None else self._collate(batch)
                    batch = []
        if batch:
            yield batch if self._collate is None else self._collate(batch)

    def _opened(self, epoch: int) -> BinaryIO:
        """The pipe of an epoch; those before it, which come first, are opened and left."""
        if epoch < self._next_pipe:
            raise DataError(f"{self._path}_{epoch} has been read already: a pipe brings each epoch once")
        while self._next_pipe < epoch:
            with open(f"{self._path}_{self._next_pipe}", "rb") as pipe:
                pipe.read(1)  # by then the next one is there
            self._next_pipe += 1
        self._next_pipe = epoch + 1
        return open(f"{self._path}_{epoch}", "rb")
