"""Which process supervises a job, on a machine that has more to do."""

from __future__ import annotations

import subprocess
import sys

STARTS = """
import subprocess, sys
from pathlib import Path
from estimator_sdk.values.home import JobFolder
from estimator_sdk.backends.supervised import client, detached
from estimator_sdk.backends.supervised.job_folder.record import Process
from estimator_sdk.backends.supervised.job_folder.supervision import is_supervisor

folder = JobFolder(Path(sys.argv[1]))
known = []
for _ in range(60):
    supervisor = detached.start(client.MAIN, str(folder.path), subprocess.DEVNULL)
    known.append(is_supervisor(Process.started_as(supervisor.pid), folder))
    supervisor.kill()
    supervisor.communicate()
sys.exit(known.count(False))
"""


def test_a_supervisor_is_known_from_the_moment_that_it_is_started(tmp_path):
    # Several that do so at once take the processor from each other in the middle of it.
    programs = [subprocess.Popen([sys.executable, "-c", STARTS, str(tmp_path)]) for _ in range(4)]
    assert [program.wait() for program in programs] == [0, 0, 0, 0]
