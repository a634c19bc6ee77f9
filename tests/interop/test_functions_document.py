"""The examples of docs/functions.md, as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "functions.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("number", "result", "shown"),
    [(0, "world_size == 2", "[1,0]<stdout>:rank 0 of 2 trains for 3 epochs at 0.01"), (1, "double(4) == 8", "")],
)
def test_an_example_does_what_it_says(number, result, shown, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    script = tmp_path / "example.py"
    script.write_text(f"{EXAMPLES[number]}\nassert {result}\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def test_all_examples_are_run():
    assert len(EXAMPLES) == 2
