"""What a trial changes between ranks, on the CPUs of this machine."""

import os

import pytest
from estimator_container.contract.names import DOCTOR
from estimator_container.training import trials
from estimator_container.training.trials import world


@pytest.fixture
def affinity():
    before = os.sched_getaffinity(0)
    yield sorted(before)
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_ranks_of_a_host_share_its_cpus(affinity, monkeypatch, ranks):
    monkeypatch.setenv(DOCTOR, "own-cpus")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    taken = []
    for rank in range(ranks):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        os.sched_setaffinity(0, affinity)
        trials.begin(None)
        taken += sorted(os.sched_getaffinity(0))
    assert taken == affinity


def test_where_there_is_not_one_for_each_nobody_is_bound(affinity, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(len(affinity) + 1))
    world.keep_to_own_cpus()
    assert sorted(os.sched_getaffinity(0)) == affinity
