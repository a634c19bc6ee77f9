"""Where PyTorch waits for input and writes checkpoints."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ..page import CHECKPOINT, INPUT
from . import trial
from .timed import timed

if TYPE_CHECKING:
    from ..step_account import StepAccount


def watch_loaders(dataloader: ModuleType, account: StepAccount) -> None:
    """A batch of a DataLoader is waited for; so are its workers, which each epoch may start anew."""
    iterator, loader = dataloader._BaseDataLoaderIter, dataloader.DataLoader
    if trial.has(trial.REPLAY):
        iterator.__next__ = trial.replayed(iterator.__next__)
    iterator.__next__ = timed(iterator.__next__, account, INPUT)
    loader.__iter__ = timed(loader.__iter__, account, INPUT)


def watch_saving(serialization: ModuleType, account: StepAccount) -> None:
    """`torch.save`, by which frameworks on PyTorch save, too."""
    serialization.save = timed(trial.saving(serialization.save), account, CHECKPOINT)  # type: ignore[attr-defined]
