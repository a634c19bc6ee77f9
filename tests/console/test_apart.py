"""Jobs of clusters, which have a folder of their own in the home, and may not answer."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from pathlib import Path

import pytest

from estimator_sdk.backends.ssh.files import SshFolder, Whereabouts
from estimator_sdk.backends.ssh.pool import PoolHost

from .folders import make_job
from .server import console, wait_until

REQUESTS = 12
"""More than the console has threads."""


def make_job_apart(home: Path, backend: str, name: str, port: int = 1) -> Path:
    """The folder of a job of a cluster; that of a pool has a machine on this one, at that port."""
    made = make_job(home, name, backend=backend)
    if backend == "ssh":
        first = PoolHost("127.0.0.1", port)
        SshFolder(made.path).write_whereabouts(Whereabouts(first, "/nowhere", ""))
    return made.path


def rows(server) -> list[str]:
    return sorted(each["name"] for each in server.get("jobs")["jobs"])


@pytest.mark.parametrize("backend", ["ssh", "slurm"])
def test_jobs_that_begin_and_go_while_the_console_runs_are_in_the_table(tmp_path, backend):
    make_job(tmp_path, "here")
    make_job_apart(tmp_path, backend, "early")
    with console(tmp_path) as server:
        wait_until(lambda: rows(server) == ["early", "here"])
        late = make_job_apart(tmp_path, backend, "late")
        wait_until(lambda: rows(server) == ["early", "here", "late"])
        (row,) = server.get("jobs?text=late")["jobs"]
        assert (row["backend"], row["status"]) == (backend, "Completed")
        shutil.rmtree(late)
        wait_until(lambda: rows(server) == ["early", "here"])


def test_a_machine_that_does_not_answer_holds_up_nothing_else(tmp_path):
    make_job(tmp_path, "here")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        folder = make_job_apart(tmp_path, "ssh", "away", silent.getsockname()[1])
        record = json.loads((folder / "record.json").read_text())
        (folder / "record.json").write_text(json.dumps({**record, "status": "InProgress", "ended": None}))
        with console(tmp_path) as server:
            wait_until(lambda: rows(server) == ["away", "here"])
            asking = [threading.Thread(target=server.ask, args=("/api/jobs/away",)) for _ in range(REQUESTS)]
            for thread in asking:
                thread.start()
            assert rows(server) == ["away", "here"]
            assert server.get("jobs/here/story")["attempt"] == 1
            assert all(thread.is_alive() for thread in asking)
            for thread in asking:
                thread.join()
            assert server.get("jobs/away")["status"] == "InProgress"
