"""What an image's Python says of itself; here it is the one that runs the tests."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest

from estimator_sdk.backends.docker.images import look_inside

SOURCE = Path(look_inside.__file__).read_text(encoding="utf-8")


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    source, copy = Path(estimator_container.__file__).parent, tmp_path / "toolkit"
    shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def look(toolkit: Path, *modules: str, path: str) -> dict[str, object]:
    command = [sys.executable, "-c", SOURCE, str(toolkit), *modules]
    done = subprocess.run(command, env={"PATH": path}, cwd="/", capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_it_says_what_there_is_and_compiles_the_toolkit(toolkit):
    facts = look(toolkit, "json", "no_such_module", path=os.environ["PATH"])
    assert facts["python"] == list(sys.version_info[:3])
    assert facts["modules"] == ["json"]
    assert facts["mpirun"]["version"].startswith("mpirun (Open MPI) 4.")
    sources = list(toolkit.rglob("*.py"))
    assert len(list(toolkit.rglob("*.pyc"))) == len(sources) > 100


def test_a_first_process_that_passes_no_signals_on_is_told(toolkit):
    first = Path("/proc/1/comm").read_text().strip()
    assert look(toolkit, path="/nowhere")["gets_signals"] is (first in look_inside.INITS)


def test_a_python_that_is_too_old_could_read_it():
    ast.parse(SOURCE, feature_version=(3, 4))
    assert SOURCE.isascii()  # where the locale is C, it could not be given as an argument otherwise
