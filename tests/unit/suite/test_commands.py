"""`scripts/test` itself: wrong words cost nothing, what is interrupted ends at once, and no lost engine goes unnoticed.

The script is the real one, but for the number of workers, in a project of its own whose linters find nothing, whose
engine is a few lines, and whose tests are what the case is about.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import SECONDS, wait_for

ROOT = Path(__file__).parents[3]
ENGINE = """
import signal, sys
def end(number, _):
    open("engine-ended", "w").close()
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, lambda number, _: None)
print("ENGINE=here\\n", flush=True)
sys.stdin.read()
"""
WAITS = """
import os, signal
def test_waits():
    assert os.environ["ENGINE"] == "here"
    try:
        open("up", "w").close()
        signal.pause()
    finally:
        open("cleaned-up", "w").close()
"""
BOUNDS = """
import pytest
@pytest.mark.alone
def test_bounds(): pass
"""
ALONE = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "budget":
            item.add_marker(pytest.mark.alone)
"""
COUNTS = "def test_counts(): open('engine-ended').close()\n"
LANES = ["tests, four at once", "tests that bound a time, two at once", "budgets, one by one"]
WRITES = "open({!r}, 'w').close()\n"


@pytest.fixture
def project(tmp_path):
    """A project that the script checks; what is left of its processes at the end is killed."""
    files = {
        "scripts/test": re.sub(r"-n [24]\b", "-n 1", (ROOT / "scripts" / "test").read_text()),
        "scripts/setup": "#!/bin/sh\ntouch installed\n",
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['alone', 'long']\npythonpath = ['.']\n",
        "conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--results')\n",
        "tests/engines.py": ENGINE,
        "tests/tables.py": WRITES.format("tables"),
        "tests/proofs.py": WRITES.format("proofs"),
        "tests/test_bounds.py": BOUNDS,
        "tests/test_passes.py": "def test_passes(): pass\n",
        "tests/budget/conftest.py": ALONE,
        "tests/budget/test_counts.py": COUNTS,
        ".venv/bin/python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
        **{f".venv/bin/{linter}": "#!/bin/sh\n" for linter in ("ruff", "mypy", "lint-imports")},
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


@contextlib.contextmanager
def started(project, *words):
    """The script as a terminal starts it; the lock of whole runs is one of its own, for this may be part of one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist"}
    as_root = ["--map-root-user"] if os.geteuid() else []
    own_lock = ["unshare", "--mount", *as_root, "sh", "-ec", 'mount -t tmpfs own /run/lock && exec "$@"', "sh"]
    with subprocess.Popen(
        [*own_lock, "scripts/test", *words],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as script:
        try:
            yield script
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)


def done(project, *words):
    """The exit code of the script, and what it said."""
    with started(project, *words) as script:
        said, _ = script.communicate(timeout=5 * SECONDS)
    return script.returncode, said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["quick"], "there is no quick"),
        (["tests/test_passed.py::test_passes"], "there is no tests/test_passed.py"),
        ([""], "there is no path"),
        (["--al"], "there is no --al"),
        (["fast", "tests"], "fast takes no path"),
        (["--all", "tests"], "--all takes no path"),
        (["--repeat", "tests"], "--repeat takes a number of rounds"),
        (["--repeat", "0", "tests"], "--repeat takes a number of rounds"),
        (["--repeat", "3"], "there is no path"),
        (["--repeat", "3", "-x"], "there is no -x"),
    ],
)
def test_wrong_words_are_told_before_anything_is_installed(project, words, sentence):
    code, said = done(project, *words)
    assert code == 2 and said.startswith(f"scripts/test: {sentence}") and "scripts/test --repeat N PATH" in said
    assert not (project / "installed").exists()


def test_ctrl_c_ends_it_and_nothing_is_written_of_a_run_that_was_cut_off(project):
    (project / "tests/test_passes.py").write_text(WAITS)
    with started(project) as script:
        wait_for((project / "up").exists, SECONDS)
        os.killpg(script.pid, signal.SIGINT)  # as a terminal does
        said, _ = script.communicate(timeout=5 * SECONDS)
    assert script.returncode == 130 and "== tests that bound a time" not in said
    assert (project / "cleaned-up").exists() and (project / "engine-ended").exists()
    assert not (project / "tables").exists()


def test_a_script_that_is_told_to_end_interrupts_its_tests(project):
    (project / "tests/test_passes.py").write_text(WAITS)
    with started(project) as script:
        wait_for((project / "up").exists, SECONDS)
        script.terminate()
        script.wait(SECONDS)
        wait_for((project / "cleaned-up").exists, SECONDS)
        assert (project / "engine-ended").exists()


def test_an_engine_that_does_not_end_as_it_should_fails_a_run_that_is_green_otherwise(project):
    (project / "tests/engines.py").write_text(ENGINE.replace("128 + number", "1"))
    code, said = done(project)
    assert code == 1 and "the servers that the tests share did not end as they should: exit code 1" in said
    assert re.findall(r"^== (.*)", said, re.MULTILINE) == ["linters and types", *LANES] and "failed" not in said
    assert (project / "tables").exists() and (project / "proofs").exists()


def test_an_engine_that_does_not_start_is_told(project):
    (project / "tests/engines.py").write_text("raise SystemExit('no such program')\n")
    code, said = done(project)
    assert code == 1 and "the servers that the tests share did not start" in said
    assert re.findall(r"^== (.*)", said, re.MULTILINE) == ["linters and types"]
