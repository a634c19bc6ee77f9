"""Each fault of the cluster of containers once; `python -m tests.slurm.containers.chaos --count 100` has more."""

from __future__ import annotations

import pytest

from .chaos import drawn, play
from .cluster import ContainerCluster
from .faults import FAULTS

SEED = 20261126


@pytest.mark.long
@pytest.mark.law("E2", "E2b", "G2", "G6")
@pytest.mark.parametrize("number", range(len(FAULTS)), ids=FAULTS)
def test_a_fault_ends_a_job_as_it_must_and_nothing_is_left(containers: ContainerCluster, number: int):
    ending = play(containers, drawn(number, SEED))
    assert ending.is_good, str(ending)
