"""Jobs that are hurt again and again, and the goodput of each."""

import threading

import pytest

from benchmarks.enduring import SideBySide
from tests.waiting import SECONDS


def test_all_runs_are_under_way_at_the_same_time_and_once():
    meeting, begun = threading.Barrier(3, timeout=SECONDS), []

    def run(value):
        begun.append(value)
        meeting.wait()  # which fails unless all three are there
        return value

    runs = SideBySide({name: lambda name=name: run(name) for name in (1.0, 2.0, 3.0)})
    assert [runs.result(name) for name in (2.0, 1.0, 3.0, 2.0)] == [2.0, 1.0, 3.0, 2.0]
    assert sorted(begun) == [1.0, 2.0, 3.0]


def test_what_a_run_raises_is_raised_once_none_is_under_way_and_hides_no_other():
    may_end, ended = threading.Event(), []

    def slow():
        may_end.wait(SECONDS)
        ended.append("slow")
        return 1.0

    def fails():
        threading.Timer(0.05, may_end.set).start()
        raise RuntimeError("it failed")

    runs = SideBySide({"fails": fails, "slow": slow})
    with pytest.raises(RuntimeError, match="it failed"):
        runs.result("fails")
    assert ended == ["slow"] and runs.result("slow") == 1.0
