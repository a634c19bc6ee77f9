"""The CPUs that each rank of a host keeps to: those near its GPU, or one of its own where there are just enough."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Callable

from ..contract.names import GPU_SHARE
from ..logs.frames import SPAWNED
from ..runtime import machine
from ..worlds.mpi.world import MpiWorld
from ..worlds.world import DirectWorld
from .spec import HostSpec


def cpus_of_ranks(spec: HostSpec) -> Callable[[int, int], Collection[int]]:
    """Those of a rank, by its number and its local rank; empty where it may use any."""
    world = spec.world
    if isinstance(world, MpiWorld) and world.places_ranks:
        return lambda rank, local_rank: ()
    chosen = _near_gpus(spec)
    if not chosen and isinstance(world, MpiWorld):
        chosen = [{cpu} for cpu in _one_each(spec, world)]
    # The wrappers of a direct world are not told their local rank: its ranks are numbered host by host.
    first = world.ranks_of(spec.name)[0] if isinstance(world, DirectWorld) else None

    def cpus(rank: int, local_rank: int) -> Collection[int]:
        index = local_rank if first is None else rank - first
        return chosen[index] if rank < SPAWNED and index < len(chosen) else ()

    return cpus


def _near_gpus(spec: HostSpec) -> Sequence[Collection[int]]:
    """The CPUs near the GPU of each rank, which takes the GPU with the number of its local rank, as scripts do.

    Empty unless each has a GPU of its own, some CPUs of this process are near it, and others are not. What is alone on
    its machine, or uses no GPU that is known to be its own, has the CPUs of all.
    """
    ranks, shared = spec.world.processes_per_host if spec.world else 1, spec.settings.hosts_per_machine
    if ranks * shared == 1 or (shared > 1 and GPU_SHARE not in os.environ) or machine.gpus() != ranks:
        return []
    from . import gpus  # few hosts have any

    allowed, known = os.sched_getaffinity(0), gpus.near_cpus()
    near = [known.get(name, frozenset()) & allowed for name in gpus.visible(os.environ)]
    return near if len(near) == ranks and all(near) and any(each != allowed for each in near) else []


def _one_each(spec: HostSpec, world: MpiWorld) -> list[int]:
    """A CPU for each rank of this host, if its machine has just as many as ranks; else none are set apart."""
    hosts, shared = world.hosts, spec.settings.hosts_per_machine
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) != machine.cpus() or shared * world.processes_per_host != len(cpus):
        return []
    if shared not in (1, len(hosts)):
        return []  # which of them share this machine is not known
    first = hosts.index(spec.name) * world.processes_per_host if shared > 1 else 0
    return cpus[first : first + world.processes_per_host]
