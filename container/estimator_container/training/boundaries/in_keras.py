"""Where Keras writes checkpoints, and takes the batches of an epoch."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..page import CHECKPOINT
from ..trials import left_out, words
from .timed import timed

if TYPE_CHECKING:
    from ..step_account import StepAccount


def watch_saving(saving_api: ModuleType, account: StepAccount) -> None:
    """What models save themselves by, and the callbacks that have them do so."""
    for name in ("save_model", "save_weights"):
        setattr(saving_api, name, timed(left_out.saving(getattr(saving_api, name)), account, CHECKPOINT))


def watch_epochs(trainer: ModuleType, account: StepAccount) -> None:
    """In a trial what `fit` is given is noted, or it goes on with one iterator over all epochs.

    So it does with the first batch replayed: iterators that it makes anew are a part of what its input costs.
    """
    epochs: Any = trainer.TFEpochIterator
    if words.has(words.GO_ON) or words.has(words.REPLAY):
        from ..trials import going_on

        going_on.over_epochs(epochs)
    if words.has(words.LOOK):
        epochs.__init__ = _noting(epochs.__init__)


def _noting(stock: Any) -> Any:
    from ..trials import watch

    @functools.wraps(stock)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        watch.loader.setdefault("given", type(self.data_adapter).__name__)  # the first is what it trains on

    return __init__
