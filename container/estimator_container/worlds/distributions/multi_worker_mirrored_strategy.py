"""The world of TensorFlow's `MultiWorkerMirroredStrategy`: a worker on each host, which finds the others by TF_CONFIG.

There is no chief besides worker 0, which is on the first host ("Multi-worker training with Keras", TensorFlow's guide).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...contract.reserved import Reserved
from .. import tensorflow
from ..world import DirectWorld


class MirroredWorld(DirectWorld):
    """One cluster of workers; each has its server at the endpoint of its host."""

    def variables_of(self, rank: int, endpoints: Sequence[str]) -> dict[str, str]:
        cluster = {"worker": endpoints}
        return {**super().variables_of(rank, endpoints), **tensorflow.variables(cluster, "worker", rank)}


def world(reserved: Reserved, hosts: tuple[str, ...], gpus: int) -> MirroredWorld:
    """The world of this distribution: one worker on each host."""
    return MirroredWorld(hosts, 1)
