"""Jobs of a user who is logged in on the cluster of containers, as JSON that his programs print."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .cluster import ContainerCluster

SUBMIT = """
import json, pathlib
from estimator_sdk import Estimator
folder = pathlib.Path.home() / {folder!r}
folder.mkdir()
(folder / "train.py").write_text({source!r})
arguments = json.loads({arguments!r})
print(Estimator(entry_point=str(folder / "train.py"), **arguments).fit({inputs!r}, wait=False).name)
"""
END = """
import json, sys
from estimator_sdk import Job, JobFailed
from estimator_sdk.errors import JobNotFound
try:
    job = Job.attach({name!r})
except JobNotFound as error:
    never = dict.fromkeys(("status", "reason", "ended", "kind", "host", "rank", "attempts"))
    print(json.dumps({{**never, "why": str(error)}}))
    sys.exit()
try:
    job.wait(timeout={seconds})
except JobFailed:
    pass
verdict = job.verdict
print(json.dumps({{
    "status": job.status, "reason": job.reason, "ended": job.ended, "why": job.why(),
    "kind": verdict and verdict.kind, "host": verdict and verdict.host, "rank": verdict and verdict.rank,
    "attempts": [each.verdict and each.verdict.kind for each in job.attempts],
}}))
"""
LINES = """
import json
from estimator_sdk import Job
lines = Job.attach({name!r}).logs(stream="stdout")
print(json.dumps([[line.host, line.rank, line.data[:1000].decode(errors="replace")] for line in lines]))
"""


@dataclass(frozen=True)
class ClusterJob:
    """A job that was submitted from the login machine."""

    cluster: ContainerCluster
    name: str

    def end(self, seconds: float = 120.0) -> dict[str, Any]:
        """How it ended, or stands after so many seconds."""
        found: dict[str, Any] = json.loads(self.cluster.python(END.format(name=self.name, seconds=seconds)))
        return found

    def lines(self) -> list[list[Any]]:
        """Host, rank and the start of each line that its ranks have written so far."""
        found: list[list[Any]] = json.loads(self.cluster.python(LINES.format(name=self.name)))
        return found

    def wait_for_line(self, start: str, times: int = 1) -> None:
        def has_come() -> bool:
            return sum(text.startswith(start) for _, _, text in self.lines()) >= times

        self.cluster.wait(has_come, f"{times} lines that start with {start!r}")

    @property
    def number(self) -> int:
        """What Slurm calls it."""
        said = self.cluster.login(f"cat .local/share/estimator-sdk/slurm/{self.name}/submission.json")
        number: int = json.loads(said)["number"]
        return number

    def nodes(self) -> list[str]:
        """Where its hosts are: that of the supervisor is the first."""
        said = self.cluster.run("squeue", "--noheader", f"--jobs={self.number}", "--format=%N").strip()
        return self.cluster.run("scontrol", "show", "hostnames", said).split()

    def state(self) -> str:
        """Slurm's."""
        return self.cluster.run("squeue", "--noheader", "--states=all", f"--jobs={self.number}", "--format=%T").strip()


def submit(
    cluster: ContainerCluster,
    source: str,
    hosts: int = 2,
    inputs: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    **arguments: Any,
) -> ClusterJob:
    """Submit a script as the user of the login machine, in whose shell `variables` are set."""
    given = {"instance_type": "slurm", "instance_count": hosts, **arguments}
    folder = f"job-{uuid.uuid4().hex[:8]}"
    program = SUBMIT.format(folder=folder, source=source, arguments=json.dumps(given), inputs=inputs)
    return ClusterJob(cluster, cluster.python(program, variables or {}).split()[-1])


def assert_nothing_is_left(job: ClusterJob, *nodes: str) -> None:
    """Neither in the queue nor on nodes; Slurm and the kernel take a moment."""
    cluster, until = job.cluster, time.monotonic() + 60
    while cluster.queue() or any(cluster.processes(node) for node in nodes):
        assert time.monotonic() < until, (cluster.queue(), {node: cluster.processes(node) for node in nodes})
        time.sleep(0.5)
