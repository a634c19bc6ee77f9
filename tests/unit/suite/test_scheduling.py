"""Which worker runs which tests, and in which order they begin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import scheduling

ROOT = Path(__file__).parents[3]


def test_what_is_named_is_there():
    """So that a test that is renamed does not leave its place in the order unnoticed."""
    for name in (*scheduling.OF_SPINNING_RANKS, *scheduling.ON_THE_LAST_MACHINES, *scheduling.LONGEST):
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert f"def {test.partition('[')[0]}" in ((ROOT / path).read_text() if test else "def "), name


def test_what_spins_begins_first_then_what_takes_long_then_the_largest_group():
    names = {"tests/unit/a.py::test_a": 1, "tests/interop/b.py": 7, f"{scheduling.LONGEST[0]}::test_c": 1}
    names[scheduling.SPINNING] = 3
    ordered = sorted(names, key=lambda name: scheduling.begins(name, names[name]))
    assert ordered == [scheduling.SPINNING, f"{scheduling.LONGEST[0]}::test_c", "tests/interop/b.py", *list(names)[:1]]


def test_workers_run_groups_whole_and_in_this_order(tmp_path):
    """On a copy of the suite's own scheduler, with tests that only say where they ran."""
    files = {
        "tests/__init__.py": "",
        "tests/scheduling.py": (ROOT / "tests" / "scheduling.py").read_text(),
        "conftest.py": "from tests import scheduling\npytest_xdist_make_scheduler = scheduling.scheduler\n",
        "pytest.ini": "[pytest]\n",
        "tests/interop/test_a.py": "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_a(n): pass\n",
        "tests/interop/horovod_keras3/test_s.py": "def test_s(): pass\n",
        "tests/interop/test_functions_document.py": "def test_t(): pass\n",
        "tests/unit/test_u.py": "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_u(n): pass\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--import-mode=importlib", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command.append(f"--basetemp={tmp_path / 'inner'}")
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    ran = re.findall(r"^\[(gw\d)\].*PASSED (\S+)", done.stdout, re.MULTILINE)
    workers = {}
    for worker, test in ran:
        workers.setdefault(scheduling.group(test), set()).add(worker)
    assert len(workers[scheduling.SPINNING]) == len(workers["tests/interop/test_a.py"]) == 1
    assert workers[scheduling.SPINNING] != workers["tests/interop/test_a.py"]
    assert len(ran) == 15
