"""When a rank is guarded, and when nothing of the guard is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest

TOOLKIT = str(Path(estimator_container.__file__).parents[1])
SCRIPT = """
import os, sys
assert "ESTIMATOR_WEIGHTS" not in os.environ
print("estimator_container.drift" in sys.modules)
import {framework}
drift = sys.modules.get("estimator_container.drift")
print(drift is not None and drift.guard is not None)
"""


def guarded(folder, framework="torch", runner="script_runner", **env):
    (folder / "torch.py").touch()
    (folder / "train.py").write_text(SCRIPT.format(framework=framework))
    environment = {**os.environ, "PYTHONPATH": TOOLKIT, "RANK": "0", "WORLD_SIZE": "2", **env}
    argv = [sys.executable, "-m", f"estimator_container.ranks.{runner}", "train.py"]
    ran = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    before, after = ran.stdout.splitlines()
    assert before == "False"
    return after == "True"


def test_a_rank_is_guarded_once_its_script_imports_a_framework(tmp_path):
    assert guarded(tmp_path, ESTIMATOR_WEIGHTS="host")


@pytest.mark.parametrize(
    ("framework", "env"),
    [
        ("json", {"ESTIMATOR_WEIGHTS": "host"}),
        ("torch", {}),
        ("torch", {"ESTIMATOR_WEIGHTS": "host", "WORLD_SIZE": "1"}),
        ("torch", {"ESTIMATOR_WEIGHTS": "host", "ESTIMATOR_DRIFT_GUARD": "off"}),
    ],
    ids=["no framework", "no toolkit", "a world of one", "switched off"],
)
def test_else_it_is_not(tmp_path, framework, env):
    assert not guarded(tmp_path, framework, **env)
