"""A data set for PyTorch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import IterableDataset, get_worker_info

from .dataset import Batch, Dataset


class TorchBatches(IterableDataset):  # type: ignore[misc]
    """The batches of a data set for `DataLoader(TorchBatches(data), batch_size=None, num_workers=…)`.

    Worker `i` of `n` makes every `n`th batch, from the `i`th on, and the DataLoader takes one from each in turn, so the
    order is the same with any number of workers. Iterate over `data.counted(loader)`.
    """

    is_shared_by_workers = True
    """So the doctor may try more of them, though the batches have no numbers."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        return self._data.read() if worker is None else self._data.read(worker.id, worker.num_workers)
