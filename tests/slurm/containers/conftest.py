"""The cluster of containers that the tests of this folder share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import cluster
from .cluster import NODES, ContainerCluster

SETTLE_SECONDS = 15.0  # in which nodes that were not hurt have ended what was cancelled
START_SECONDS = 3600  # of the first test: the images may have to be made, on a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):  # the parents of each of thousands of paths take longer to make
            item.add_marker(pytest.mark.timeout(START_SECONDS))


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[ContainerCluster]:
    with cluster.ENGINE.shared() as made:
        yield made


@pytest.fixture
def containers(shared_cluster: ContainerCluster) -> Iterator[ContainerCluster]:
    """The cluster, with all of its nodes up and nothing in its queue."""
    shared_cluster.run("scancel", "--user=ada")
    until = time.monotonic() + SETTLE_SECONDS
    while shared_cluster.queue() and time.monotonic() < until:
        time.sleep(0.5)
    shared_cluster.replace(*(node for node in NODES if not shared_cluster.is_up(node)))
    yield shared_cluster


@pytest.fixture(scope="session", autouse=True)
def in_slurm() -> None:
    """Nobody here sees the cluster of this machine, as the tests of the folder above do."""
