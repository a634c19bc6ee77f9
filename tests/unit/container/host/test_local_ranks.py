"""The ranks of a host that are stopped and go on."""

from types import SimpleNamespace

import pytest
from estimator_container.host import local_ranks
from estimator_container.host.local_ranks import LocalRanks

from tests.waiting import SECONDS


@pytest.fixture
def ranks(loop, monkeypatch):
    """A host's, with what it has reported."""
    monkeypatch.setattr(local_ranks, "FROZEN_SECONDS", 0.05)
    made, made_reports = LocalRanks.__new__(LocalRanks), []
    made._frozen, made._spec = {}, SimpleNamespace(name="algo-1")
    made._toolkit = SimpleNamespace(loop=loop, events=SimpleNamespace(emit=lambda event: None))
    made._coordinator = SimpleNamespace(report=made_reports.append)
    return made, made_reports


def test_a_rank_that_stays_stopped_is_reported(ranks, loop):
    made, reports = ranks
    made._on_frozen(0, 19)
    loop.run_until(lambda: reports, SECONDS)
    assert [found.rank for found in reports] == [0]


def test_a_rank_that_was_stopped_twice_and_goes_on_is_not(ranks, loop):
    """That it went on in between was not heard, where it was stopped again at once."""
    made, reports = ranks
    for signum in (19, 19, 0):
        made._on_frozen(0, signum)
    loop.run_until(lambda: False, 0.2)
    assert reports == []
