"""The service's side of a job: instances that do what its description says, with the toolkit as their image.

They know the description and the objects in S3, and no more: what CreateTrainingJob was not told does not reach them.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import estimator_container
from estimator_container.contract import names as contract

from estimator_sdk.backends.docker import engine

from .stand_in import Platform

TOOLKIT = str(Path(estimator_container.__file__).parent)


class Instances:
    """The hosts of one job, as process trees of this machine that find each other by address instead of by name."""

    interface = "lo"

    def __init__(
        self,
        platform: Platform,
        name: str,
        folder: Path,
        role: Mapping[str, str] | None = None,
        python: str = sys.executable,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`role` has the variables by which programs on the instances find the role's credentials, and the server.

        `environment` is what a machine has by itself.
        """
        self.platform = platform
        self.python = python
        self.environment = environment
        self.role = role or {}
        self.job: dict[str, Any] = platform.client("sagemaker").describe_training_job(TrainingJobName=name)
        self.hosts = [f"algo-{index + 1}" for index in range(self.job["ResourceConfig"]["InstanceCount"])]
        self.folder = folder
        self.programs: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as leader:
            for host in self.hosts:
                self._prepare(host)
                self.programs[host] = self._start(host, leader)
        self.platform.tell(self.job["TrainingJobName"], SecondaryStatus="Training")

    def stop(self) -> None:
        for program in self.programs.values():
            program.send_signal(signal.SIGTERM)

    def finish(self) -> None:
        """Wait for the end, hand the logs and the model over, and say how the job ended."""
        name = self.job["TrainingJobName"]
        codes = []
        for host in self.hosts:
            code, output = self._end_of(host)
            self.platform.writes(name, host, *output.decode().splitlines())
            codes.append(code)
        output = f"{self.job['OutputDataConfig']['S3OutputPath']}/{name}/output"
        self._put(f"{output}/output.tar.gz", self._archive("output/data"))
        failure = self.folder / "algo-1" / "output" / "failure"
        if any(code not in (0, 143) for code in codes):
            reason = f"AlgorithmError: {failure.read_text()[:1024]}, exit code: {max(codes)}"
            self.platform.ends(name, "Failed", FailureReason=reason)
            return
        model = f"{output}/model.tar.gz"
        self._put(model, self._archive("model"))
        status = "Stopped" if 143 in codes else "Completed"
        self.platform.ends(name, status, ModelArtifacts={"S3ModelArtifacts": model})

    def _end_of(self, host: str) -> tuple[int, bytes]:
        output, _ = self.programs[host].communicate(timeout=150)
        return self.programs[host].returncode, output

    def _prepare(self, host: str) -> None:
        channels = {each["ChannelName"]: each for each in self.job.get("InputDataConfig", [])}
        cluster = {"current_host": host, "hosts": self.hosts, "current_instance_type": "ml.m5.xlarge"}
        configs = {
            "hyperparameters": self.job.get("HyperParameters", {}),
            "resourceconfig": {**cluster, "network_interface_name": self.interface},
            "inputdataconfig": {name: {"TrainingInputMode": "File"} for name in channels},
        }
        config = self.folder / host / "input" / "config"
        config.mkdir(parents=True)
        for name, content in configs.items():
            (config / f"{name}.json").write_text(json.dumps(content))
        for name, channel in channels.items():
            self._fetch(channel["DataSource"]["S3DataSource"]["S3Uri"], self.folder / host / "input" / "data" / name)

    def _fetch(self, uri: str, target: Path) -> None:
        """The objects whose keys begin with a prefix, named by what follows its last slash."""
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        s3 = self.platform.client("s3")
        target.mkdir(parents=True)
        for each in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
            s3.download_file(bucket, each["Key"], str(target / each["Key"][prefix.rfind("/") + 1 :]))

    def _start(self, host: str, leader: socket.socket) -> subprocess.Popen[bytes]:
        port = leader.getsockname()[1]
        os.set_inheritable(leader.fileno(), host == self.hosts[0])
        environment = {
            **{name: value for name, value in self.environment.items() if not name.startswith("AWS_")},
            **self.role,
            **self.job.get("Environment", {}),
            contract.BASE_DIR_VARIABLE: str(self.folder / host),
            contract.HOSTS_PER_MACHINE: str(len(self.hosts)),
            contract.HOST_ADDRESSES: json.dumps(dict.fromkeys(self.hosts, f"127.0.0.1:{port}")),
            "TRAINING_JOB_NAME": self.job["TrainingJobName"],
        }
        if host == self.hosts[0]:
            environment[contract.LISTEN_FD] = str(leader.fileno())
        command = [self.python, "-I", "-S", TOOLKIT, "train"]
        fds = (leader.fileno(),) if host == self.hosts[0] else ()
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, pass_fds=fds)

    def _archive(self, folder: str) -> bytes:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as tar:
            tar.add(self.folder / "algo-1" / folder, ".")
        return data.getvalue()

    def _put(self, uri: str, data: bytes) -> None:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        self.platform.client("s3").put_object(Bucket=bucket, Key=key, Body=data)


class Containers(Instances):
    """The same as containers of our image, which get what the service gives: a network, `/opt/ml` and `train`."""

    interface = "eth0"

    def __init__(self, platform: Platform, name: str, folder: Path, image: str, role: Mapping[str, str]) -> None:
        super().__init__(platform, name, folder, role)
        self.image = image
        self.engine = engine.connect()
        self.containers: dict[str, Any] = {}

    def start(self) -> None:
        # With a role they must reach the server, which is on this machine's own loopback interface.
        network = None if self.role else self.engine.networks.create(self.job["TrainingJobName"])
        for host in self.hosts:
            self._prepare(host)
            self.containers[host] = self.engine.containers.create(
                self.image,
                ["train"],
                **({"hostname": host} if network else {"network_mode": "host"}),
                volumes={str(self.folder / host): {"bind": "/opt/ml", "mode": "rw"}},
                environment={
                    **self.role,
                    **self.job.get("Environment", {}),
                    "TRAINING_JOB_NAME": self.job["TrainingJobName"],
                },
            )
            if network is not None:
                network.connect(self.containers[host], aliases=[host])
        for container in self.containers.values():
            container.start()

    def _end_of(self, host: str) -> tuple[int, bytes]:
        code: int = self.containers[host].wait(timeout=150)["StatusCode"]
        return code, self.containers[host].logs(stdout=True, stderr=True)

    def remove(self) -> None:
        for container in self.containers.values():
            container.remove(force=True, v=True)
        for network in self.engine.networks.list(names=[self.job["TrainingJobName"]]):
            network.remove()
