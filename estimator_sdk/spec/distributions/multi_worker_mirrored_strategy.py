"""`{"multi_worker_mirrored_strategy": {"enabled": True}}`: TensorFlow's strategy of that name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Distribution, Framework


@dataclass(frozen=True)
class MultiWorkerMirroredStrategy(Distribution):
    """The script is run once on each host, as a worker."""

    name: ClassVar[str] = "multi_worker_mirrored_strategy"
    framework: ClassVar[Framework | None] = "tensorflow"


Options = MultiWorkerMirroredStrategy
