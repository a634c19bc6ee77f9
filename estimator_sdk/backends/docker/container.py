"""One host as a container: what it is made of, and one call to the engine for each thing that is done with it.

The low-level interface of the Docker SDK is used, for the other one asks the engine twice for whatever it makes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.runtime import machine

from ...plan.plan import HostPlan, Plan
from . import engine
from .network import Network

if TYPE_CHECKING:
    from docker import APIClient


TOOLKIT_INSIDE = "/opt/estimator-toolkit"
"""Where containers have the toolkit that is brought to them: the folder to import it from."""
IN_ANY_IMAGE = {"PIP_BREAK_SYSTEM_PACKAGES": "1"}
"""Variables of containers to which the toolkit is brought: they are thrown away, and with them their distribution's
Python."""


class HostContainer:
    """A container of the engine, by its id. What the engine refuses is raised as docker.errors.DockerException."""

    def __init__(self, api: APIClient, identity: str) -> None:
        self._api = api
        self.identity = identity
        """The engine's id of it, which no other container has."""

    def start(self) -> None:
        """Start the container. Raises docker.errors.DockerException when the engine refuses."""
        self._api.start(self.identity)

    def output(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """What it writes to its standard output and error, from the first byte to its end."""
        chunks: Iterator[tuple[bytes | None, bytes | None]] = self._api.attach(
            self.identity, stream=True, demux=True, logs=True
        )
        return chunks

    def wait(self) -> int:
        """Wait for its end; returns its exit code."""
        return int(self._api.wait(self.identity, timeout=None)["StatusCode"])

    def is_running(self) -> bool:
        """Whether it has not ended. Raises docker.errors.DockerException."""
        return bool(self._api.inspect_container(self.identity)["State"]["Running"])

    def signal(self, signum: int) -> None:
        """Send a signal to the container's first process. Raises docker.errors.DockerException if it has ended."""
        self._api.kill(self.identity, signal.Signals(signum).name)

    def was_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of it for want of memory."""
        return bool(self._api.inspect_container(self.identity)["State"]["OOMKilled"])

    def remove(self) -> None:
        """End and remove it; nothing happens if that is done, or being done."""
        engine.remove_container(self._api, self.identity)


def create(
    api: APIClient,
    plan: Plan,
    host: HostPlan,
    name: str,
    network: Network,
    labels: Mapping[str, str],
    mounts: Sequence[tuple[str, str, bool]],
    own_toolkit: bool,
) -> HostContainer:
    """Make the container of a host on a network; `mounts` are a path here, one inside, and whether it is read-only.

    Our own toolkit needs no root and is told its secrets otherwise. Raises
    docker.errors.DockerException when the engine refuses it.
    """
    endpoint = api.create_endpoint_config(aliases=[host.name], ipv4_address=network.addresses.get(host.name))
    made = api.create_container(
        plan.image,
        **started_by(host.argv, plan.keeps_entrypoint),
        name=name,
        hostname=host.name,
        user=f"{os.getuid()}:{os.getgid()}" if own_toolkit else None,
        environment=_environment(plan, host, own_toolkit),
        labels=dict(labels),
        host_config=api.create_host_config(
            extra_hosts=dict(network.addresses), **_host_config(plan, own_toolkit, mounts)
        ),
        networking_config={"EndpointsConfig": {network.name: endpoint}},
    )
    return HostContainer(api, made["Id"])


def _host_config(plan: Plan, own_toolkit: bool, mounts: Sequence[tuple[str, str, bool]]) -> dict[str, Any]:
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    memory = machine.memory_bytes() if plan.memory is None else int(plan.memory * engine.GIB)
    options: dict[str, Any] = {
        "mounts": [Mount(inside, here, type="bind", read_only=fixed) for here, inside, fixed in mounts],
        "shm_size": memory // 2,  # an upper bound, for shared memory between ranks and data loaders
        "ulimits": [Ulimit(name=name, soft=limit, hard=limit) for name, limit in most_allowed().items()],
    }
    if plan.cpus is not None:
        options["nano_cpus"] = int(plan.cpus * 1e9)
    if plan.memory is not None:
        options["mem_limit"] = options["memswap_limit"] = memory  # no swap on top
    if own_toolkit:
        options["log_config"] = LogConfig(type="none")  # every byte is in the frames already
    if plan.instance_type == "local_gpu":
        options["device_requests"] = [DeviceRequest(count=-1, capabilities=[["gpu"]])]
    return options


def _environment(plan: Plan, host: HostPlan, own_toolkit: bool) -> dict[str, str]:
    """What `docker inspect` shows: the user's own variables only where an image knows no other way."""
    job = {**host.environment, contract.JOB_NAME_VARIABLE: plan.job_name}
    if not own_toolkit:
        return {**_region(), **plan.environment, **job}
    return {**_region(), **job, **home_of_user(), contract.STOP_TIMEOUT: str(plan.stop_timeout)}


def started_by(argv: Sequence[str], keeps_entrypoint: bool) -> dict[str, list[str]]:
    """What the engine is told to run: behind the image's ENTRYPOINT, or in its place."""
    program, *arguments = argv
    return {"command": [program, *arguments]} if keeps_entrypoint else {"entrypoint": [program], "command": arguments}


def home_of_user() -> dict[str, str]:
    """Root has a home in an image, and keeps it: keys that another image's sshd and mpirun need may lie there."""
    return {} if os.getuid() == 0 else {"HOME": "/tmp"}


def most_allowed() -> dict[str, int]:
    """Open files and locked memory as far as this process could have them: an engine may be no freer than that."""
    import resource

    hard = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK}
    return {name: resource.getrlimit(number)[1] for name, number in hard.items()}


def _region() -> dict[str, str]:
    """The AWS region of the caller, if there is one, under the name that the service gives it."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return {"AWS_REGION": region} if region else {}


INSIDE = Layout(contract.DEFAULT_BASE_DIR)
"""The base directory as a container sees it."""
