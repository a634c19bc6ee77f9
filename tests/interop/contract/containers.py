"""A platform that gives an image what the contract says, and no more: `docker run IMAGE train` with an `/opt/ml`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import wait_for

SECONDS = 120  # that a container may take on a loaded machine

Files = Mapping[str, "str | bytes"]


@dataclass(frozen=True)
class Job:
    """What the platform tells the toolkit."""

    code: Files = field(default_factory=dict)
    """In `/opt/ml/code` before the start."""
    files: Files = field(default_factory=dict)
    """Anywhere else below `/opt/ml`."""
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    """As they are on disk; `train.py` is the program unless one is named."""
    channels: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    hosts: Sequence[str] = ("algo-1",)
    base: str = "/opt/ml"
    network: str = "bridge"

    def configuration(self, host: str) -> dict[str, Any]:
        cluster = {"current_host": host, "hosts": list(self.hosts)}
        return {
            "hyperparameters": {"sagemaker_program": '"train.py"', **self.hyperparameters},
            "inputdataconfig": dict(self.channels),
            "resourceconfig": {**cluster, **self.resources},
        }


@dataclass
class Host:
    """One host of a job: a container and its `/opt/ml`."""

    folder: Path
    container: str

    def wait(self) -> int:
        """The exit code."""
        waited = subprocess.run(["docker", "wait", self.container], capture_output=True, timeout=SECONDS, check=True)
        return int(waited.stdout)

    @property
    def log(self) -> str:
        command = ["docker", "logs", self.container]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode()

    def stop(self, grace: int) -> None:
        subprocess.run(["docker", "stop", "-t", str(grace), self.container], check=True, capture_output=True)

    def waits_for(self, text: str) -> None:
        wait_for(lambda: text in self.log, SECONDS, lambda: self.log)

    def ended(self) -> Ended:
        """Wait for its end; returns what is left of it, also when the container is gone."""
        return Ended(self.folder, self.wait(), self.log)


@dataclass(frozen=True)
class Ended:
    """What a host leaves."""

    folder: Path
    code: int
    """The exit code of the container."""
    log: str

    def has(self, path: str) -> bool:
        return (self.folder / path).exists()

    def read(self, path: str) -> str:
        return (self.folder / path).read_text()

    @property
    def report(self) -> dict[str, Any]:
        """What the script has left."""
        assert self.code == 0, self.log
        return json.loads(self.read("model/report.json"))

    @property
    def failure(self) -> str:
        assert self.code != 0, self.log
        return self.read("output/failure")


@dataclass(frozen=True)
class Toolkit:
    """An image with one of the two toolkits."""

    name: str
    image: str

    @property
    def is_ours(self) -> bool:
        return self.name == "ours"

    @contextlib.contextmanager
    def start(self, job: Job, folder: Path, but: str | None = None) -> Iterator[list[Host]]:
        """The hosts of a job, each in its container, which is gone at the end; the file `but` is not there."""
        hosts = []
        try:
            for name in job.hosts:
                write(job, name, folder / name)
                if but is not None:
                    (folder / name / but).unlink()
                hosts.append(Host(folder / name, self._run(job, name, folder / name)))
            yield hosts
        finally:
            for host in hosts:
                subprocess.run(["docker", "rm", "-fv", host.container], check=True, capture_output=True)

    def _run(self, job: Job, name: str, folder: Path) -> str:
        command = ["docker", "run", "-d", "-v", f"{folder}:{job.base}"]
        command += ["--network", job.network]
        if job.network == "host":
            command += ["--add-host", f"{name}:127.0.0.1"]
        else:
            command += ["--hostname", name]
        if job.network not in ("host", "bridge"):
            command += ["--network-alias", name]
        for variable, value in job.environment.items():
            command += ["-e", f"{variable}={value}"]
        started = subprocess.run([*command, self.image, "train"], capture_output=True, check=True)
        return started.stdout.decode().strip()


def write(job: Job, host: str, folder: Path) -> None:
    """Make the `/opt/ml` of one host; a configuration that `files` has as well is as it is there."""
    for place in ("input/data", "model", "output/data", "output/intermediate", "code", "checkpoints"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    configuration = {f"input/config/{name}.json": json.dumps(data) for name, data in job.configuration(host).items()}
    code = {f"code/{name}": content for name, content in job.code.items()}
    for name, content in {**configuration, **code, **job.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def network() -> Iterator[str]:
    """One of the job's own, on which hosts find each other by name."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    subprocess.run(["docker", "network", "create", name], check=True, capture_output=True)
    yield name
    subprocess.run(["docker", "network", "rm", name], check=True, capture_output=True)
