"""The world of TensorFlow's `MultiWorkerMirroredStrategy`: a worker on each host, which finds the others by TF_CONFIG.

The form is that of "TF_CONFIG" in TensorFlow's guide "Multi-worker training with Keras": no chief besides worker 0,
which is on the first host, and no parameter servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..world import DirectWorld


class World(DirectWorld):
    """One cluster of workers; each has its server at the endpoint of its host."""

    def variables_of(self, rank: int, endpoints: Sequence[str]) -> dict[str, str]:
        cluster = {"cluster": {"worker": list(endpoints)}, "task": {"type": "worker", "index": rank}}
        return {
            **super().variables_of(rank, endpoints),
            "TF_CONFIG": json.dumps(cluster),
            # gRPC would ask the proxy of `http_proxy` for the other workers ("Environment Variables" of gRPC Core).
            "no_grpc_proxy": ",".join(endpoint.rpartition(":")[0] for endpoint in endpoints),
        }


def world(hyperparameters: Mapping[str, Any], hosts: tuple[str, ...], gpus: int) -> World:
    return World(hosts, 1)
