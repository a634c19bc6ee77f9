"""A backend as another package would bring it: a job is one child process, its log a file, its state an exit code.

It has no supervisor of ours, and nothing of the SDK but the port.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from estimator_container.failures.verdict import Verdict
from estimator_container.logs.lines import Block

from estimator_sdk.backends.port import Capabilities, Finding, Summary
from estimator_sdk.backends.process.backend import ProcessBackend
from estimator_sdk.backends.status import FINAL, AttemptRecord
from estimator_sdk.errors import EstimatorError, JobNotFound
from estimator_sdk.plan.plan import Plan

PLACE = "SHELL_BACKEND_JOBS"
"""The variable that names the folder of its jobs."""
RUN = """
import json, os, subprocess, sys, tarfile
folder, command = sys.argv[1], json.loads(sys.argv[2])
with tarfile.open(sys.argv[3]) as code:
    code.extractall(f"{folder}/code", **({"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}))
with open(f"{folder}/log", "wb") as log:
    child = subprocess.Popen(command, cwd=f"{folder}/code", stdout=log, stderr=log, start_new_session=True)
    open(f"{folder}/pid.new", "w").write(str(child.pid))
    os.rename(f"{folder}/pid.new", f"{folder}/pid")
    code = child.wait()
open(f"{folder}/code.new", "w").write(str(code))
os.rename(f"{folder}/code.new", f"{folder}/exit")
"""


class ShellBackend:
    """Runs a job as one process of this machine."""

    name = "shell"
    capabilities = Capabilities(is_this_environment=True)

    def plan(self, spec: Any) -> Plan:
        return replace(ProcessBackend().plan(spec), backend=self.name)

    def start(self, plan: Plan) -> ShellJob:
        folder = _place() / plan.job_name
        folder.mkdir(parents=True)
        (folder / "request").write_text(json.dumps(dict(plan.request)))
        words = [sys.executable, "-c", RUN, str(folder), json.dumps(list(plan.command)), str(plan.code)]
        subprocess.Popen(words, start_new_session=True)
        return ShellJob(folder)

    def attach(self, name: str) -> ShellJob:
        if not (_place() / name).is_dir():
            raise JobNotFound(f"the shell has no job {name!r}")
        return ShellJob(_place() / name)

    def list(self, limit: int | None = None) -> list[ShellJob]:
        newest = sorted(_place().glob("*/request"), key=lambda each: each.stat().st_mtime, reverse=True)
        return [ShellJob(each.parent) for each in newest][:limit]

    def check(self) -> Iterable[Finding]:
        shell = shutil.which("sh")
        return [Finding("shell", shell is not None, shell or "none on PATH", "apt-get install dash", self.name)]


class ShellJob:
    """One job, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.name = folder.name

    def record(self) -> Any:
        ended, stopped = self.path / "exit", (self.path / "stopped").exists()
        status = "Stopping" if stopped else "InProgress"
        verdict, code = None, None
        if ended.exists():
            code = int(ended.read_text())
            status = "Stopped" if stopped else "Failed" if code else "Completed"
        if status == "Failed":
            verdict = Verdict("exit_code", f"algo-1 exited with code {code}", "algo-1", None, code)
        created = (self.path / "request").stat().st_mtime
        return SimpleNamespace(
            name=self.name,
            backend=ShellBackend.name,
            status=status,
            hosts=("algo-1",),
            created=created,
            ended=ended.stat().st_mtime if ended.exists() else None,
            attempts=(AttemptRecord(1, created),),
            reason="",
            verdict=verdict,
            model_data=None,
            output="",
            is_final=status in FINAL,
        )

    def request(self) -> dict[str, Any]:
        return dict(json.loads((self.path / "request").read_text()))

    def wait(self, timeout: float | None = None) -> Any:
        until = None if timeout is None else time.monotonic() + timeout
        while not self.record().is_final and (until is None or time.monotonic() < until):
            time.sleep(0.05)
        return self.record()

    def blocks(self, follow: bool, on_event: object = None, on_open_line: object = None) -> Iterator[Block]:
        if follow:
            self.wait()
        if (self.path / "log").exists():
            yield Block(time.time_ns(), "algo-1", None, "stdout", (self.path / "log").read_bytes())

    def log_files(self) -> list[Path]:
        return []

    def stop(self) -> None:
        if not self.record().is_final:
            (self.path / "stopped").touch()
            os.killpg(int((self.path / "pid").read_text()), 15)

    def summary(self) -> Summary:
        return Summary.from_state(self.record())

    def delete(self) -> None:
        if not self.record().is_final:
            raise EstimatorError(f"the job {self.name} runs; stop it first")
        shutil.rmtree(self.path)


def _place() -> Path:
    return Path(os.environ[PLACE])
