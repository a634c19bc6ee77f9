"""What the laws do to jobs from outside, and what they look for afterwards."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import docker
from estimator_container.frames import EVENT, FrameParser

from estimator_sdk import Job
from estimator_sdk.docker import engine


def processes_of(job_folder: Path) -> list[str]:
    """The processes of this machine that have anything to do with the job."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(job_folder).encode() in text and state != "Z":
            found.append(f"{process.name} {(process / 'cmdline').read_bytes()!r}")
    return found


def left_of(job: Job) -> list[str]:
    """Processes, containers and networks of the job that are still there."""
    left = processes_of(job.folder)
    if job.backend == "docker":
        client = docker.from_env()
        chosen = {"label": f"{engine.JOB_LABEL}={job.name}"}
        left += [each.name for each in client.containers.list(all=True, filters=chosen, ignore_removed=True)]
        left += [each.name for each in client.networks.list(filters=chosen)]
    return left


def kill_host(job: Job, host: str) -> None:
    """End a host as a power cut would: nothing of it can say goodbye."""
    if job.backend == "docker":
        chosen = {"label": f"{engine.JOB_LABEL}={job.name}", "name": f"-{host}"}
        (container,) = docker.from_env().containers.list(filters=chosen)
        container.kill("SIGKILL")
    else:
        os.kill(toolkit_of(job, host), signal.SIGKILL)


def toolkit_of(job: Job, host: str) -> int:
    """The pid of a host's toolkit: the supervisor's child whose base directory is the host's."""
    supervisor = job._local.record().supervisor.pid
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            environ = (process / "environ").read_bytes()
        except OSError:
            continue
        if parent == supervisor and f"SAGEMAKER_BASE_DIR={base_directory(job, host)}\0".encode() in environ:
            return int(process.name)
    raise AssertionError(f"{host} does not run")


def wait_until_up(job: Job, ranks: int) -> None:
    """Until every rank has said `up`."""
    missing = set(range(ranks))
    for line in job.logs(stream="stdout", follow=True):
        missing -= {line.rank} if line.data == b"up\n" else set()
        if not missing:
            return
    raise AssertionError(f"the job ended before ranks {missing} were up: {job.why()}")


def wait_for(condition, seconds: float = 15.0) -> None:
    """Wait for something outside that cannot tell."""
    over = threading.Event()
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        over.wait(0.01)


def base_directory(job: Job, host: str, attempt: int | None = None) -> Path:
    """A host's `/opt/ml`, of the current attempt if none is named."""
    return job.folder / "attempts" / str(attempt or job._local.record().attempt) / host


def tell(job: Job, name: str, host: str = "algo-1") -> None:
    """Make the file that a script waits for."""
    (base_directory(job, host) / "output" / "data" / name).touch()


def events(job: Job, name: str, host: str = "algo-1", attempt: int | None = None) -> list[dict[str, Any]]:
    """The events of that name that a host has told so far."""
    data = (base_directory(job, host, attempt) / "output" / "logs" / "frames").read_bytes()
    found = [json.loads(frame.data) for frame in FrameParser().feed(data) if frame.stream == EVENT]
    return [event for event in found if event["event"] == name]


def agent_of(job: Job) -> int:
    """The pid of the job's checkpoint agent."""
    supervisor = job._local.record().supervisor.pid
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            argv = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == supervisor and any(word.endswith(b"checkpoints/agent.py") for word in argv):
            return int(process.name)
    raise AssertionError("no agent runs")
