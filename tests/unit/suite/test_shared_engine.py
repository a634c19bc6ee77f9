"""Engines that start side by side: none waits for another, and none is left."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.shared_engine import side_by_side
from tests.waiting import SECONDS

ROOT = Path(__file__).parents[3]


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


COMMAND = """
import os, signal, sys
try:
    print(os.environ["ENGINE"], flush=True)
    signal.pause() if sys.argv[1] == "waits" else sys.exit(7)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
RUNS = """
import contextlib, sys
from tests.shared_engine import run_with
@contextlib.contextmanager
def engine():
    try:
        yield {"ENGINE": "up"}
    finally:
        print("engine ended", flush=True)
sys.exit(run_with(engine(), [sys.executable, "-c", *sys.argv[1:]]))
"""


def test_a_command_has_the_engine_and_its_exit_code_is_told():
    command = [sys.executable, "-c", RUNS, COMMAND, "fails"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert (done.stdout.splitlines(), done.returncode) == (["up", "engine ended"], 7), done.stderr


@pytest.mark.parametrize(("number", "left"), [(signal.SIGTERM, ["engine ended"]), (signal.SIGKILL, [])])
def test_a_command_whose_parent_ends_is_interrupted_before_its_engine_ends(number, left):
    with subprocess.Popen([sys.executable, "-c", RUNS, COMMAND, "waits"], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"up\n"
        parent.send_signal(number)
        assert parent.stdout.read().decode().splitlines() == ["interrupted", *left]
    assert parent.returncode == (128 + number if left else -number)


def test_a_command_is_interrupted_where_the_parent_of_its_parent_is_killed():
    """As a lane of `scripts/test` is: the signal at its end reaches what has the engine, and not the command."""
    lane = ["sh", "-c", 'setpriv --pdeathsig INT "$@" & wait', "sh", sys.executable, "-c", RUNS, COMMAND, "waits"]
    with subprocess.Popen(lane, cwd=ROOT, stdout=subprocess.PIPE) as script:
        assert script.stdout.readline() == b"up\n"
        script.kill()
        assert script.stdout.read().decode().splitlines() == ["interrupted", "engine ended"]
