"""The modules that a start loads; each costs about half a millisecond."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import estimator_container
import pytest

TOOLKIT = Path(estimator_container.__file__).parent
REPORT = """
import atexit, json, sys
before = set(sys.modules)
atexit.register(lambda: print("\\n" + json.dumps(sorted(set(sys.modules) - before))))
"""


def loaded(statement: str, *flags: str) -> Counter[str]:
    """The modules that a statement loads into a bare interpreter, whatever it does at its end."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", REPORT + statement], capture_output=True, text=True, check=True
    )
    return Counter(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", ["Estimator", "Job", "TensorFlow", "list_jobs"])
def test_the_import_of_a_public_name(keep_to_budget, name):
    keep_to_budget(f"modules of `from estimator_sdk import {name}`", loaded(f"from estimator_sdk import {name}"))


def test_the_help_of_the_command_line(keep_to_budget):
    statement = "sys.argv = ['estimator', '--help']; from estimator_sdk.cli.main import main; main()"
    keep_to_budget("modules of `estimator --help`", loaded(statement))


@pytest.mark.parametrize(
    "module", ["train", "ranks.wrapper", "ranks.script_runner", "agents.checkpoints.agent", "agents.channels.agent"]
)
def test_the_start_of_a_program_of_the_toolkit(keep_to_budget, module):
    statement = f"sys.path.append({str(TOOLKIT.parent)!r}); import estimator_container.{module}"
    keep_to_budget(f"modules of the toolkit's {module}", loaded(statement, "-I", "-S"))
