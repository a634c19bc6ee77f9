import pytest
from estimator_container.agents.checkpoints import backlog as backlogs
from estimator_container.agents.checkpoints.backlog import Backlog


@pytest.fixture
def clock(monkeypatch):
    """What time it is, in seconds."""
    now = [100.0]
    monkeypatch.setattr(backlogs.time, "monotonic", lambda: now[0])
    return now


def test_it_is_as_old_as_the_first_change(clock):
    backlog = Backlog()
    assert backlog.seconds() == 0.0
    for _ in range(3):
        backlog.changed()
        clock[0] += 1
    assert backlog.seconds() == 3.0
    backlog.nothing_new()
    assert backlog.seconds() == 0.0


def test_what_changes_while_the_rest_is_published_is_counted_from_then(clock):
    backlog = Backlog()
    backlog.changed()
    clock[0] += 1
    backlog.publishing()
    clock[0] += 1
    backlog.changed()
    assert backlog.seconds() == 2.0
    backlog.size = 5
    assert backlog.published() == 2.0
    assert backlog.size == 0
    clock[0] += 1
    assert backlog.seconds() == 1.0


def test_what_was_not_published_is_as_old_as_before(clock):
    backlog = Backlog()
    backlog.changed()
    clock[0] += 1
    backlog.publishing()
    backlog.changed()
    clock[0] += 1
    backlog.not_published()
    assert backlog.seconds() == 2.0
    backlog.publishing()
    assert backlog.published() == 2.0
