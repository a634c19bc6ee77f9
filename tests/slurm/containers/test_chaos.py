"""Random faults to machines of the cluster; `python -m tests.slurm.containers.chaos --count 20` does more of them."""

from __future__ import annotations

import pytest

from .chaos import FAULTS, inject
from .cluster import ContainerCluster

SEED = 20261126


@pytest.mark.long
@pytest.mark.law("E2", "E2b", "G6")
def test_a_random_fault_to_a_machine_is_named_and_nothing_is_left(containers: ContainerCluster):
    endings = inject(containers, range(len(FAULTS)), SEED)
    assert {each.grade for each in endings} <= {"correct", "vague"}, [*map(str, endings)]
