"""What a test costs in CPU time: that of processes which nobody waits for is counted, and shown by file and by test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests import cpu

ROOT = Path(__file__).parents[3]
CONFTEST = """
from pathlib import Path
from tests import cpu
def pytest_configure(config):
    config.pluginmanager.register(cpu.Meter(Path(__file__).with_name("costs")))
"""
TESTS = """
import subprocess, sys
from tests.waiting import wait_until_gone
BURN = "import time\\nwhile time.process_time() < 0.5: pass"
def test_burns():
    left = subprocess.run(["sh", "-c", 'setsid "$@" >/dev/null & echo $!', "sh", sys.executable, "-c", BURN],
                          check=True, capture_output=True, text=True)
    wait_until_gone(int(left.stdout))
def test_rests():
    pass
"""


def test_what_processes_use_that_nobody_waits_for_is_counted(tmp_path):
    """In a control group, which belongs to root, as the tests of attacks and of the pool do."""
    for name, text in {"conftest.py": CONFTEST, "test_a.py": TESTS, "pytest.ini": "[pytest]\n"}.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "costs").read_text().splitlines()]
    costs = {name: used for name, used, *_ in lines}
    assert costs["test_a.py::test_burns"] >= 0.5 > costs["test_a.py::test_rests"]


def test_costs_are_shown_by_file_or_folder_and_by_test(tmp_path, capsys):
    path = tmp_path / "costs"
    lines = [["a/b/test_c.py::test_d", 1.0, 2.0, 0.5], ["a/test_e.py::test_f[x::y]", 3.0, 3.0, 0.0]]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert cpu.main(str(path)) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "4.0 s of CPU in 5.0 s, 2 tests"
    assert [line.split() for line in shown[3:5]] == [
        ["3.0", "0.0", "3.0", "1", "a/test_e.py"],
        ["1.0", "0.5", "2.0", "1", "a/b/test_c.py"],
    ]
    assert [line.split()[-1] for line in shown[6:]] == ["a/test_e.py::test_f[x::y]", "a/b/test_c.py::test_d"]
    assert cpu.main(str(path), "1") == 0
    assert capsys.readouterr().out.splitlines()[3].split() == ["4.0", "0.5", "5.0", "2", "a"]
