"""The world of TensorFlow's `ParameterServerStrategy`: the chief on the first host, a worker on each other, and beside
each of them a parameter server.

So SageMaker's containers of TensorFlow lay it out, but for the name of the chief, which is `chief` since TensorFlow 2
("Parameter server training with ParameterServerStrategy", TensorFlow's guide). The script runs as the chief and as the
workers; the parameter servers are the toolkit's own. On a single host there is the chief alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...contract.reserved import Reserved
from ...runtime.errors import ConfigurationError
from .. import tensorflow
from ..world import DirectWorld


class ParameterServerWorld(DirectWorld):
    """Of each host the first rank runs the script, and the second one is its parameter server."""

    ports_per_host = 2

    def is_awaited(self, rank: int) -> bool:
        """The chief coordinates; what the others serve is of no use after its end."""
        return rank == 0

    def role_of(self, rank: int) -> str:
        kind, index = self._task_of(rank)
        return kind if kind == "chief" else f"{kind} {index}"

    def module_of(self, rank: int) -> str | None:
        return "estimator_container.worlds.tensorflow_server" if self._task_of(rank)[0] == "ps" else None

    def variables_of(self, rank: int, endpoints: Sequence[str]) -> dict[str, str]:
        ports = [endpoint.split(",") for endpoint in endpoints]
        chief, *workers = [first for first, *_ in ports]
        cluster = {"chief": [chief]}
        if workers:
            cluster.update({"worker": workers, "ps": [each[-1] for each in ports]})
        return {**super().variables_of(rank, endpoints), **tensorflow.variables(cluster, *self._task_of(rank))}

    def _task_of(self, rank: int) -> tuple[str, int]:
        host, is_server = divmod(rank, self.processes_per_host)
        if is_server:
            return "ps", host
        return ("worker", host - 1) if host else ("chief", 0)


def world(reserved: Reserved, hosts: tuple[str, ...], gpus: int) -> ParameterServerWorld:
    """The world of this distribution. Raises ConfigurationError for a job with steps."""
    if reserved.steps:
        raise ConfigurationError(
            "parameter_server runs one script, but the job has steps; give an entry point, or another distribution"
        )
    return ParameterServerWorld(hosts, 2 if len(hosts) > 1 else 1)
