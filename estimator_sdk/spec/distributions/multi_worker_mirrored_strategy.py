"""`{"multi_worker_mirrored_strategy": {"enabled": True}}`: TensorFlow's strategy of that name."""

from __future__ import annotations

from .base import Distribution


class MultiWorkerMirroredStrategy(Distribution):
    """The script is run once on each host, as a worker."""

    framework = "tensorflow"


Options = MultiWorkerMirroredStrategy
