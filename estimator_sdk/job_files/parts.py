"""What any form of a job file comes to: the arguments of an estimator, and where in the file each of them stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..spec.training_input import Inputs
    from .document import Place


@dataclass(frozen=True)
class Parts:
    """A job file, understood."""

    framework: str | None
    """`tensorflow` or `pytorch` for an estimator that knows it; None for a plain one."""
    arguments: Mapping[str, Any]
    """Of that estimator."""
    places: Mapping[str, Place]
    """Argument -> where the file says it."""
    inputs: Inputs | None
