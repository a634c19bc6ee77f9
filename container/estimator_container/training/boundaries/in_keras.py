"""Where Keras writes checkpoints."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ..page import CHECKPOINT
from ..trials import left_out
from .timed import timed

if TYPE_CHECKING:
    from ..step_account import StepAccount


def watch_saving(saving_api: ModuleType, account: StepAccount) -> None:
    """What models save themselves by, and the callbacks that have them do so."""
    for name in ("save_model", "save_weights"):
        setattr(saving_api, name, timed(left_out.saving(getattr(saving_api, name)), account, CHECKPOINT))
