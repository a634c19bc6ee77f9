"""Where PyTorch waits for input and writes checkpoints."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from ..page import CHECKPOINT, INPUT
from ..trials import left_out, words
from .timed import timed

if TYPE_CHECKING:
    from ..step_account import StepAccount


def watch_loaders(dataloader: ModuleType, account: StepAccount) -> None:
    """A batch of a DataLoader is waited for; so are its workers, which each epoch may start anew."""
    iterator, loader = dataloader._BaseDataLoaderIter, dataloader.DataLoader
    if words.has(words.REPLAY):
        iterator.__next__ = left_out.replayed(iterator.__next__)
    iterator.__next__ = timed(iterator.__next__, account, INPUT)
    loader.__iter__ = timed(_in_trial(loader.__iter__), account, INPUT)


def watch_saving(serialization: ModuleType, account: StepAccount) -> None:
    """`torch.save`, by which frameworks on PyTorch save, too."""
    saving: Any = serialization
    saving.save = timed(left_out.saving(_in_background(saving.save)), account, CHECKPOINT)


def _in_trial(stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In the place of a loader's `__iter__`: that with what a trial changes, else that function."""
    if not (words.has(words.WORKERS) or words.has(words.LOOK)):
        return stock
    from ..trials import applied, watch

    @functools.wraps(stock)
    def __iter__(self: Any) -> Any:
        if words.has(words.LOOK):
            watch.saw_loader("DataLoader", workers=self.num_workers, can_share=applied.can_share(self))
        applied.with_workers(self)
        return stock(self)

    return __iter__


def _in_background(stock: Callable[..., None]) -> Callable[..., None]:
    if not words.has(words.IN_BACKGROUND):
        return stock
    from ..trials import applied

    return applied.in_background(stock)
