"""Engines that start side by side: none waits for another, and none is left."""

from __future__ import annotations

import contextlib
import threading

import pytest

from tests.shared_engine import side_by_side
from tests.waiting import SECONDS


@pytest.fixture
def ended():
    """The names of those that have ended."""
    return []


def engine(name, ended, meet):
    @contextlib.contextmanager
    def started():
        meet()
        try:
            yield name
        finally:
            ended.append(name)

    return started()


def test_each_starts_while_the_others_do_and_all_end_with_the_block(ended):
    meeting = threading.Barrier(3)
    with side_by_side([engine(name, ended, lambda: meeting.wait(SECONDS)) for name in "abc"]) as made:
        assert (made, ended) == (["a", "b", "c"], [])
    assert sorted(ended) == ["a", "b", "c"]


def test_one_that_does_not_start_ends_those_that_do_late(ended):
    failed = threading.Event()

    def fail():
        failed.set()
        raise RuntimeError("no such program")

    late = engine("late", ended, lambda: failed.wait(SECONDS))
    with pytest.raises(RuntimeError, match="no such program"), side_by_side([engine("bad", ended, fail), late]):
        raise AssertionError("it began all the same")
    assert ended == ["late"]


def test_the_threads_stay_as_long_as_the_block_for_a_daemon_ends_with_the_one_that_started_it(ended):
    threads = []
    engines = [engine(name, ended, lambda: threads.append(threading.current_thread())) for name in "ab"]
    with side_by_side(engines):
        assert [each.is_alive() for each in threads] == [True, True]
    assert [each.is_alive() for each in threads] == [False, False]
