"""Waits of tests: they end with what they wait for, or at their bound, and leave the CPU to others meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import waiting

SLEEPS = ["sleep", "600"]


@pytest.fixture
def process():
    with subprocess.Popen(SLEEPS) as started:
        yield started
        started.kill()


def test_a_condition_is_looked_at_until_it_holds_and_what_it_is_comes_back():
    seen = iter([None, 0, [], "found", "later"])
    assert waiting.wait_for(lambda: next(seen)) == "found"


def test_a_condition_that_does_not_hold_fails_at_the_bound_and_says_what_there_is():
    with pytest.raises(AssertionError, match="in 0.05 s. there are 3 left"):
        waiting.wait_for(lambda: False, 0.05, lambda: "there are 3 left")


def test_a_condition_is_looked_at_once_more_where_the_bound_has_passed_meanwhile():
    """A machine that stood still for as long as the bound is no reason to fail."""
    rests = iter([0.2, 0.0])
    assert waiting.wait_for(lambda: time.sleep(rest := next(rests)) or not rest, 0.1)


def test_a_container_that_cannot_be_paused_at_once_is_tried_again():
    said = iter(["OCI runtime pause failed: unable to freeze: unknown", None, "No such container: algo-1"])

    def pause():
        if text := next(said):
            raise OSError(text)

    waiting.freeze(pause)
    with pytest.raises(OSError, match="No such container"):
        waiting.freeze(pause)


def test_a_wait_whose_looks_take_long_rests_longer():
    def look():
        begun = time.thread_time()
        while time.thread_time() - begun < 0.02:
            pass

    began, spent = time.monotonic(), time.thread_time()
    with pytest.raises(AssertionError):
        waiting.wait_for(look, 1)
    assert time.thread_time() - spent < 0.5 * (time.monotonic() - began)


def test_the_end_of_a_process_is_waited_for(process):
    waiting.kill(process.pid)
    assert waiting.state_of(process.pid) == "Z"
    process.wait()
    waiting.wait_until_gone(process.pid)
    assert waiting.state_of(process.pid) == ""


def test_a_process_that_stays_fails_at_the_bound(process):
    with pytest.raises(AssertionError, match=f"process {process.pid} is still there after 0.05 s"):
        waiting.wait_until_gone(process.pid, 0.05)


def test_a_process_that_stands_still_is_waited_for(process):
    with pytest.raises(AssertionError, match="is in state 'S'"):
        waiting.wait_for(lambda: waiting.state_of(process.pid) == "S")
        waiting.wait_until_stopped(process.pid, 0.05)
    os.kill(process.pid, signal.SIGSTOP)
    waiting.wait_until_stopped(process.pid)


STANDS_STILL = """
import os, signal
from tests.waiting import Load, wait_for
load = Load()
wait_for(lambda: load._looks)
os.kill(os.getpid(), signal.SIGSTOP)
wait_for(lambda: load.stretched(0.0) > 0.9)
"""


def test_a_bound_is_stretched_by_what_the_machine_stood_still():
    with subprocess.Popen([sys.executable, "-c", STANDS_STILL], cwd=Path(__file__).parents[3]) as process:
        try:
            waiting.wait_until_stopped(process.pid)
            time.sleep(1.2)
            process.send_signal(signal.SIGCONT)
            assert process.wait(waiting.SECONDS) == 0
        finally:
            process.kill()


def test_a_bound_is_stretched_by_the_processes_that_there_are_to_a_cpu():
    load = waiting.Load()
    computing = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(waiting.CPUS * 3)
    ]
    try:
        waiting.wait_for(lambda: load.stretched(2.0) > 4.0)  # which comes to 6 s and more
    finally:
        for each in computing:
            each.kill()
            each.wait()
        load.end()
    kept = load.stretched(2.0)
    time.sleep(3 * waiting.LOOK_SECONDS)
    assert load.stretched(2.0) == kept
