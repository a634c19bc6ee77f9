"""What a cluster says of the partitions that a job may run in."""

from __future__ import annotations

from collections.abc import Mapping

from ....errors import BackendError, InvalidArgument
from ....values.naming import suggestion
from .. import queue

Partitions = Mapping[str, Mapping[str, str]]
"""Names of partitions -> what Slurm says of each, in its own words."""


def of_job(named: str | None, where: str) -> Partitions:
    """Those that are named, with commas between them; without a name the default one. {} where Slurm does not answer.

    Raises InvalidArgument for one that the cluster does not have; `where` is the argument that names it.
    """
    try:
        lines = queue.ask("scontrol", "--all", "--oneliner", "show", "partition").splitlines()
    except BackendError:
        return {}
    known = {each["PartitionName"]: each for each in map(queue.facts, lines) if "PartitionName" in each}
    if named is None or not known:
        return {name: each for name, each in known.items() if each.get("Default") == "YES"}
    chosen = named.split(",")
    for name in chosen:
        if name not in known:
            what = f"{where} names the partition {name!r}, which this cluster does not have"
            raise InvalidArgument(where, f"{what}; {suggestion(name, known)}")
    return {name: known[name] for name in chosen}


def check_nodes(partitions: Partitions, nodes: int) -> None:
    """Raises InvalidArgument for a job that would wait for ever, because none of its partitions has as many nodes.

    A site may add nodes to a partition that has none.
    """
    most = max((int(each.get("TotalNodes", "0")) for each in partitions.values()), default=0)
    if 0 < most < nodes:
        has = f"partition {' or '.join(map(repr, partitions))} has {most}"
        what = f"the job needs {nodes} nodes, those of spare_hosts included, but {has}, so it would never start"
        raise InvalidArgument("instance_count", f"{what}; ask for fewer hosts, or name another partition")
