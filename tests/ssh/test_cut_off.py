"""A client that is cut off from its pool."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.long
def test_a_client_that_is_cut_off_for_a_minute_misses_nothing_and_output_goes_on(tmp_path):
    command = ["unshare", "--net", sys.executable, "-m", "tests.ssh.cut_off", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "lines during the cut": 0,
        "status during the cut": "InProgress",
        "status at the first line after it": "InProgress",
        "whole": ["algo-1", "algo-2"],
        "status": "Completed",
    }
