"""What the tasks of a TensorFlow cluster find in their environment, whatever their strategy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def variables(cluster: Mapping[str, Sequence[str]], kind: str, index: int) -> dict[str, str]:
    """`cluster` has the `address:port` of each task, by kind; TF_CONFIG's form is that of TensorFlow's guides."""
    tasks = {name: list(addresses) for name, addresses in cluster.items()}
    hosts = dict.fromkeys(address.rpartition(":")[0] for addresses in tasks.values() for address in addresses)
    return {
        "TF_CONFIG": json.dumps({"cluster": tasks, "task": {"type": kind, "index": index}}),
        # gRPC would ask the proxy of `http_proxy` for the other tasks ("Environment Variables" of gRPC Core).
        "no_grpc_proxy": ",".join(hosts),
    }
