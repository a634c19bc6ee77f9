"""Tests that are repeated: the first failure ends it and its round is named, and the load ends with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import repeat
from tests.waiting import SECONDS, wait_for

ROOT = Path(__file__).parents[3]
LOAD = repeat.COMPUTES.encode()


def words(folder):
    """The arguments for a test in that folder."""
    options = ["-s", "-p", "no:cacheprovider", f"--rootdir={folder}", f"--basetemp={folder / 'inner'}"]
    return [str(folder / "test_repeated.py"), *options]


@pytest.fixture
def started(tmp_path, request):
    """The repetition of a test that waits, as a command line starts it, or its load alone; what goes on is ended."""
    (tmp_path / "test_repeated.py").write_text(WAIT)
    whole = [sys.executable, "-m", "tests.repeat", "2", *words(tmp_path)]
    command = whole if request.param == "repetition" else [sys.executable, "-c", WAIT_UNDER_LOAD]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **output) as child:
        yield child
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def load_of(child):
    """The processes that compute for it, by their ids."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == child.pid and LOAD in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


COUNT = """
import pathlib
def test_counts():
    rounds = pathlib.Path(__file__).parent / "rounds"
    with rounds.open("a") as file:
        file.write("x")
    assert len(rounds.read_text()) != 2
"""


@pytest.mark.parametrize(
    ("rounds", "before", "code", "after", "last"),
    [("3", "", 1, "xx", "round 2 of 3 failed"), ("1", "xx", 0, "xxx", "all 1 rounds passed")],
)
def test_it_goes_on_until_a_round_fails(tmp_path, monkeypatch, capfd, rounds, before, code, after, last):
    monkeypatch.setattr(repeat, "BUSY", 0)
    (tmp_path / "test_repeated.py").write_text(COUNT)
    (tmp_path / "rounds").write_text(before)
    assert repeat.main(rounds, *words(tmp_path)) == code
    said = capfd.readouterr()
    assert (said.err or said.out).splitlines()[-1] == last
    assert (tmp_path / "rounds").read_text() == after


@pytest.mark.parametrize("given", [["0", "tests"], ["tests"], ["3"], [""]])
def test_what_is_not_a_number_of_rounds_and_a_path_is_refused(given, capsys):
    assert repeat.main(*given) == 2
    assert "usage: scripts/test --repeat ROUNDS PATH" in capsys.readouterr().err


WAIT = """
import signal
def test_waits():
    print("up", flush=True)
    signal.pause()
"""


WAIT_UNDER_LOAD = """
import signal
from tests import repeat
with repeat.load(repeat.BUSY):
    print("up", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize(
    ("started", "number"), [("repetition", signal.SIGINT), ("load", signal.SIGKILL)], indirect=["started"]
)
def test_two_processes_compute_until_the_repetition_ends_however_it_does(started, number):
    """Where the signal reaches nothing else the load shows it alone, without a pytest that starts beside it."""
    assert any("up" in line for line in started.stdout)
    wait_for(lambda: len(load_of(started)) == 2)  # each is a copy of this program at first
    if number == signal.SIGINT:
        os.killpg(started.pid, number)  # as a terminal does
    else:
        started.kill()
    started.wait(SECONDS)
    wait_for(lambda: not load_of(started), SECONDS, lambda: load_of(started))
