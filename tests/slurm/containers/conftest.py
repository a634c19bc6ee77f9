"""The cluster of containers that the tests of this folder share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import cluster
from .cluster import NODES, ContainerCluster

SETTLE_SECONDS = 15.0  # in which a node that was not hurt has ended what was cancelled
START_SECONDS = 3600  # of the first test: the images may have to be made, on a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(START_SECONDS))


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[ContainerCluster]:
    with cluster.shared() as made:
        yield made


@pytest.fixture
def containers(shared_cluster: ContainerCluster) -> Iterator[ContainerCluster]:
    """The cluster, with all of its nodes idle and nothing in its queue."""
    shared_cluster.run("scancel", "--user=ada")
    until = time.monotonic() + SETTLE_SECONDS
    while (hurt := [node for node in NODES if shared_cluster.state(node) != "idle"]) and time.monotonic() < until:
        time.sleep(0.5)
    shared_cluster.replace(*hurt)
    yield shared_cluster


@pytest.fixture(scope="session", autouse=True)
def in_slurm() -> None:
    """Nobody here sees the cluster of this machine, as the tests of the folder above do."""
