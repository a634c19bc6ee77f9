"""Waiting for the batches of a data set is waiting for input."""

import numpy as np
import pytest
from estimator_container.contract.names import DOCTOR
from estimator_container.data import Dataset
from estimator_container.data.reading import ahead
from estimator_container.training.page import INPUT


@pytest.fixture
def said(account_of):
    return account_of(ahead)


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6))
    return Dataset(str(tmp_path), batch_size=2, rank=0, world_size=1)


def test_each_batch_is_waited_for_and_so_is_the_end(said, data):
    for batch in data:
        said.append(len(batch))
    assert said == [INPUT, "end", 2, INPUT, "end", 2, INPUT, "end", 2, INPUT, "end"]


def test_a_trial_that_replays_gives_the_first_batch_as_often_as_there_are_batches(said, data, monkeypatch):
    monkeypatch.setenv(DOCTOR, "replay")
    assert [list(map(int, batch)) for batch in data] == [[0, 1]] * 3
    assert data.epoch == 1
