"""The samples of some places, from shards that are opened when they are due and closed when they are not."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from estimator_container.storage import Object

from ..errors import DataError
from ..order import EpochOrder
from . import formats
from .disk_cache import DiskCache
from .formats import Sample
from .shards import Shards, ShardSource


def open_object(source: ShardSource, cache: DiskCache | None, each: Object) -> BinaryIO:
    """A shard as an open file. Raises StorageError or DataError."""
    if cache is not None:
        return cache.open(each)
    path = f"{source.uri[len('file://') :].rstrip('/')}/{each.key}"
    try:
        return open(path, "rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check that it is still there") from None


def count_samples(source: ShardSource, cache: DiskCache | None, format: str, each: Object) -> int:
    """How many a shard has. Raises StorageError or DataError."""
    with open_object(source, cache, each) as file:
        return formats.count(format, file)


class Reader:
    """Reads the samples of one epoch; what it has open is of the process that reads."""

    def __init__(self, shards: Shards, cache: DiskCache | None, order: EpochOrder) -> None:
        self._shards = shards
        self._cache = cache
        self._order = order
        self._group = -1
        self._open: dict[int, tuple[BinaryIO, Sequence[Sample]]] = {}
        self._bringing: threading.Thread | None = None

    def batches(self, numbers: Iterable[Sequence[int]]) -> Iterator[list[Sample]]:
        """The samples with these numbers. Raises DataError and StorageError."""
        try:
            for batch in numbers:
                yield [self._sample(number) for number in batch]
        finally:
            self._close(())
            if self._bringing is not None:
                self._bringing.join()

    def _sample(self, number: int) -> Sample:
        group = self._order.group_of(number)
        if group != self._group:
            self._group = group
            self._close(self._order.shards(group))
            self._bring(self._order.shards(group + 1))
        shard, index = self._order.place(number)
        if shard not in self._open:
            self._open[shard] = self._opened(shard)
        return self._open[shard][1][index]

    def _opened(self, shard: int) -> tuple[BinaryIO, Sequence[Sample]]:
        each = self._shards.objects[shard]
        file = open_object(self._shards.source, self._cache, each)
        samples, expected = formats.open_shard(self._shards.format, file), self._shards.samples[shard]
        if len(samples) != expected:
            file.close()
            raise DataError(
                f"{each.key} in {self._shards.source.uri} has {len(samples)} samples, but {expected} when they were "
                "counted: bring it again, or write the list of shards again with 'estimator data index'"
            )
        return file, samples

    def _close(self, all_but: Sequence[int]) -> None:
        for shard in set(self._open) - set(all_but):
            file, _ = self._open.pop(shard)
            file.close()

    def _bring(self, shards: Sequence[int]) -> None:
        """Have the shards that come next brought meanwhile, as far as there is room for them."""
        cache = self._cache
        if cache is None or not shards:
            return
        if self._bringing is not None and self._bringing.is_alive():
            return
        coming = [self._shards.objects[shard] for shard in shards]
        self._bringing = threading.Thread(target=_bring_all, args=(cache, coming), daemon=True)
        self._bringing.start()


def _bring_all(cache: DiskCache, coming: Sequence[Object]) -> None:
    try:
        for each in coming:
            if not cache.bring(each):
                return
    except Exception:  # whoever needs the shard meets the fault again, and says it
        return
