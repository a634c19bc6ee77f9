"""A: secrets; what arrives is told by `test_reports.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.mark.law("A2")
def test_secrets_are_in_no_file_and_no_argument(script, out):
    secret = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
    source = """
import os, pathlib, sys, time
assert os.environ["AWS_SECRET_ACCESS_KEY"]
hidden = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
for argv in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        assert hidden not in argv.read_bytes(), argv
    except (FileNotFoundError, ProcessLookupError):
        pass
base = pathlib.Path(os.environ["SM_INPUT_DIR"]).parent
assert not (base / "input" / "config" / "worldsecret").exists()
print("ok")
"""
    job = script.run(source, hosts=2, processes=1, environment={"AWS_SECRET_ACCESS_KEY": secret})
    assert out(job, rank=0) == out(job, rank=1) == b"ok\n"
    for folder, _, names in os.walk(job.folder):
        for name in names:
            path = Path(folder, name)
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path
            assert name != "worldsecret"


@pytest.mark.law("A2")
def test_a_printed_plan_hides_secrets_and_shows_the_rest(script):
    plan = script.estimator("", environment={"API_TOKEN": "abc123", "COLOUR": "blue"}).plan()
    assert "abc123" not in str(plan)
    assert "COLOUR=blue" in str(plan)
