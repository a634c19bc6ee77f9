"""What a rank records in a window: from one end of a step to another, without any concern of the script's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest
from estimator_container.training import page, window
from estimator_container.training.step_clock import StepClock
from estimator_container.training.window import Window

from tests.waiting import SECONDS


@pytest.fixture
def clock(host, tmp_path):
    """The clock of rank 3, whose windows are written to `tmp_path`."""
    return StepClock(host.open("3"), lambda number: Window(str(tmp_path), 3, number))


def ask(host, number):
    return page.set_window(str(host.pages), number)


def written(tmp_path, number):
    path = tmp_path / window.name_of(number, 3)
    return json.loads(path.read_text()) if path.exists() else None


def test_a_window_begins_and_ends_with_a_step(clock, host, tmp_path):
    clock.mark_explicitly(1)
    assert ask(host, 7) == [3]
    for step in (2, 3, 4):
        clock.mark_explicitly(step)
    assert written(tmp_path, 7) is None
    ask(host, 0)
    assert written(tmp_path, 7) is None
    clock.mark_explicitly(5)
    clock.mark_explicitly(6)
    found = written(tmp_path, 7)
    assert [number for number, _ in found["steps"]] == [3, 4, 5]
    times = [found["began"], *(ended for _, ended in found["steps"])]
    assert times == sorted(times) and times[-1] <= found["ended"]
    assert found["said"] == ["neither Horovod nor PyTorch runs in it, so there are its steps alone"]


def test_where_nobody_asks_nothing_is_written(clock, tmp_path):
    for step in range(5):
        clock.mark_explicitly(step)
    assert not list(tmp_path.glob("*.json"))


def test_a_window_that_follows_another_at_once_is_one_of_its_own(clock, host, tmp_path):
    for number in (7, 8, 0):
        ask(host, number)
        clock.mark_explicitly(number)
    assert [[step for step, _ in written(tmp_path, number)["steps"]] for number in (7, 8)] == [[8], [0]]


def test_a_script_that_is_over_before_its_window_leaves_what_there_is(tmp_path):
    source = "import sys\nfrom estimator_container.training.window import Window\n"
    source += "made = Window(sys.argv[1], 3, 7)\nmade.step_ended(1, 10)\n"
    toolkit = str(Path(estimator_container.__file__).parents[1])
    given = {**os.environ, "PYTHONPATH": toolkit}
    subprocess.run([sys.executable, "-c", source, str(tmp_path)], env=given, check=True, timeout=SECONDS)
    assert [number for number, _ in written(tmp_path, 7)["steps"]] == [1]


@pytest.mark.parametrize("gone", [True, False])
def test_what_cannot_be_recorded_is_said_and_ends_no_step(clock, host, tmp_path, monkeypatch, gone):
    class Broken:
        kind = "torch"

        def start(self, path):
            if not gone:
                raise RuntimeError("it profiles already")

        def stop(self):
            raise OSError("the disk is full")

    monkeypatch.setattr(window.recorders, "recorders", lambda: [Broken()])
    ask(host, 7)
    clock.mark_explicitly(1)
    ask(host, 0)
    clock.mark_explicitly(2)
    why = "the disk is full" if gone else "it profiles already"
    assert written(tmp_path, 7)["said"] == [f"PyTorch's profiler recorded nothing: {why}"]
    assert written(tmp_path, 7)["files"] == {}


def test_a_child_of_the_rank_ends_no_window(clock, host, tmp_path):
    ask(host, 7)
    clock.mark_explicitly(1)
    clock.stop()  # what happens in a child
    clock.mark_explicitly(2)
    assert written(tmp_path, 7) is None


def test_what_a_window_takes_is_no_work_of_the_rank(clock, host):
    clock.mark_explicitly(1)
    ask(host, 7)
    clock.mark_explicitly(2)
    begun = clock._works_since
    assert begun >= host.read()[0].last
