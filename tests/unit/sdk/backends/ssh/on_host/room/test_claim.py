"""A keeper's part in a claim, on a machine whose disk does not take a lease for a while."""

from __future__ import annotations

import json
from functools import partial

import pytest
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.room import claim
from estimator_sdk.backends.ssh.on_host.room.leases import Lease


@pytest.fixture
def leases(tmp_path, monkeypatch):
    """Where they are; there is a file in the way at first."""
    folder = tmp_path / "leases"
    folder.touch()
    monkeypatch.setattr(claim, "Lease", partial(Lease, folder=folder))
    monkeypatch.setattr(claim, "LOOK_SECONDS", 0.05)
    return folder


@pytest.fixture
def holder():
    loop, told = Loop(), []
    made = claim.Leaseholder(loop, lambda *fields: told.append(fields))
    yield made, loop, told
    made.close()


def is_busy(lease):
    raise TimeoutError("busy")


def terms(limit):
    return [json.dumps({"job": "a", "ticket": [1.0, "a"], "slots": 1, "limit": limit})]


def test_a_lease_that_could_not_be_made_is_made_later(leases, holder):
    made, loop, told = holder
    made.hear(words.CLAIM, terms(2))
    loop.run_until(lambda: False, 0.2)
    ((room, full, why),) = told  # once, however often it is tried
    assert (room, full) == (words.ROOM, words.FULL) and str(leases) in why
    leases.unlink()
    loop.run_until(lambda: told[-1][1] == words.FREE, 60)
    made.hear(words.TAKE, [])
    assert told[-1] == (words.ROOM, words.HELD, "")
    loop.run_until(lambda: False, 0.2)
    assert told[-1][1] == words.HELD and len(list(leases.iterdir())) == 1


def test_where_nothing_is_limited_a_job_runs_without_a_lease(leases, holder):
    made, loop, told = holder
    made.hear(words.CLAIM, terms(0))
    leases.unlink()
    loop.run_until(lambda: False, 0.2)
    assert [each[1] for each in told] == [words.HELD] and not leases.exists()


def test_a_look_that_fails_is_tried_again_also_where_nothing_is_limited(leases, holder, monkeypatch):
    made, loop, told = holder
    leases.unlink()
    with monkeypatch.context() as busy:
        busy.setattr(Lease, "who_is_before", is_busy)
        made.hear(words.CLAIM, terms(0))
    loop.run_until(lambda: bool(told), 60)
    assert told == [(words.ROOM, words.FREE, "")]


def test_a_lease_that_cannot_be_given_back_is_dropped_and_made_anew(leases, holder, monkeypatch):
    made, loop, told = holder
    leases.unlink()
    made.hear(words.CLAIM, terms(2))
    made.hear(words.TAKE, [])
    with monkeypatch.context() as busy:
        busy.setattr(Lease, "give_back", is_busy)
        made.hear(words.GIVE_BACK, [])
    assert told[-1] == (words.ROOM, words.FULL, "busy") and list(leases.iterdir()) == []
    loop.run_until(lambda: told[-1][1] == words.FREE, 60)
    assert len(list(leases.iterdir())) == 1


def test_a_lease_that_cannot_be_written_down_is_not_held_and_is_taken_later(leases, holder, monkeypatch):
    made, loop, told = holder
    leases.unlink()
    made.hear(words.CLAIM, terms(2))
    with monkeypatch.context() as full:
        full.setattr("os.pwrite", lambda *_: 0)
        made.hear(words.TAKE, [])
    assert [each[1] for each in told] == [words.FREE, words.FULL]
    loop.run_until(lambda: told[-1][1] == words.FREE, 60)
    made.hear(words.TAKE, [])
    assert told[-1] == (words.ROOM, words.HELD, "")
    assert json.loads(next(leases.iterdir()).read_text())["is_held"]
