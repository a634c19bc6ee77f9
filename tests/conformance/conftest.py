"""The laws run on every backend that is named: `pytest tests/conformance --backend process`; without one, on all."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from estimator_container.storage import open_store

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends import BUILT_IN
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import build, catalogue
from tests import spark
from tests.interop.sagemaker_service import stand_in
from tests.ssh import pool
from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import BUCKET, Server

from . import by_turns, service


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        named = metafunc.config.getoption("backend") or BUILT_IN
        chosen = [name for name in named if by_turns.can_hold(name, metafunc.definition)]
        metafunc.parametrize("backend", chosen, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = filter(by_turns.sees_store, items)
    by_turns.mark(items)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the jobs of the user."""
    folder = tmp_path_factory.mktemp("home")
    os.environ["ESTIMATOR_HOME"] = str(folder)
    yield folder
    os.environ.pop("ESTIMATOR_HOME", None)  # another suite of the same run has a home of its own


@pytest.fixture(autouse=True)
def jobs_at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker runs tests of other suites in between, which set a home of their own."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(home))


@pytest.fixture(scope="session")
def where(backend: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The estimator's arguments that choose the backend; what it needs is made first."""
    if backend == by_turns.SERVICE:
        return service.WHERE
    if backend == by_turns.EXECUTORS:
        request.getfixturevalue("spark_session")
    machines = {"slurm": {"instance_type": "slurm"}, "ssh": {"hosts": ",".join(pool.NAMES)}}
    return {"backend": backend, **machines.get(backend, {}), **_image(backend, "mpi")}


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory, localstack_server: Server) -> Iterator[object]:
    """A session with room for all hosts of a law, as threads of one machine of Java, which has an account of S3."""
    with contextlib.ExitStack() as until_over:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in localstack_server.environment().items():
                patch.setenv(name, value)
            started = spark.session(tmp_path_factory.mktemp("spark"), f"local[{spark.ROOM}]")
            context = until_over.enter_context(started)
        yield context


@pytest.fixture(scope="session")
def running_service(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[tuple[str, threading.Event]]:
    """Where a service listens, and the event while which it runs whatever is submitted.

    It is one of its own, for others play the service's part themselves.
    """
    folder = tmp_path_factory.mktemp("service")
    python = str(Path(pytestconfig.getoption("python_of_hosts")).absolute())
    with stand_in.running_service(folder) as platform, service.running(platform, folder, python) as awake:
        yield platform.endpoint, awake


@pytest.fixture(autouse=True)
def account(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings of somebody with an account, and a service that runs jobs, for jobs of the service alone."""
    if "backend" not in request.fixturenames or request.getfixturevalue("backend") != by_turns.SERVICE:
        yield
        return
    request.getfixturevalue("no_aws")
    endpoint, awake = request.getfixturevalue("running_service")
    stand_in.become_user(monkeypatch, endpoint)
    awake.set()
    yield
    awake.clear()


@pytest.fixture(scope="session")
def with_horovod(backend: str) -> dict[str, str]:
    """What a script that imports Horovod needs besides: an image with it, where there are images."""
    return _image(backend, "tensorflow")


def _image(backend: str, framework: catalogue.Framework) -> dict[str, str]:
    if backend != "docker":
        return {}
    image = catalogue.newest(framework).name
    build.ensure(engine.connect(), image, sys.stderr)
    return {"image_uri": image}


@dataclass
class Script:
    """Runs a training script as a job and hands out what is left of it."""

    where: Mapping[str, str]
    folder: Path

    def estimator(
        self,
        files: str | Mapping[str, str | bytes],
        *,
        hosts: int = 1,
        processes: int | None = None,
        mpi_options: str | None = None,
        **arguments: Any,
    ) -> Estimator:
        """An estimator for a script given as text, or for a folder of files whose `train.py` is run."""
        source = self.folder / f"source-{len(list(self.folder.iterdir()))}"
        contents = {"train.py": files} if isinstance(files, str) else files
        for name, content in contents.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if processes is not None:
            mpi = {"enabled": True, "processes_per_host": processes}
            arguments["distribution"] = {"mpi": {**mpi, **({"custom_mpi_options": mpi_options} if mpi_options else {})}}
        return Estimator(
            **{
                "entry_point": "train.py",
                "source_dir": str(source),
                "instance_count": hosts,
                **self.where,
                "base_job_name": "law",
                **arguments,
            }
        )

    def run(self, files: str | Mapping[str, str | bytes], *, inputs: Any = None, **arguments: Any) -> Job:
        """Run to the end, which must be a good one."""
        return self.estimator(files, **arguments).fit(inputs, logs="none")

    def fail(self, files: str | Mapping[str, str | bytes], *, inputs: Any = None, **arguments: Any) -> JobFailed:
        """Run to the end, which must be a failure."""
        with pytest.raises(JobFailed) as failed:
            self.run(files, inputs=inputs, **arguments)
        return failed.value


@pytest.fixture
def script(where: Mapping[str, str], tmp_path: Path) -> Script:
    return Script(where, tmp_path)


@pytest.fixture
def out() -> Callable[..., bytes]:
    """What was written, as bytes: by a rank, a host, to a stream."""

    def joined(job: Job, **choice: Any) -> bytes:
        return b"".join(line.data for line in job.logs(**{"stream": "stdout", **choice}))

    return joined


@dataclass
class Objects:
    """A store with what a test has put there, looked at through the port."""

    uri: str
    proxy: FaultProxy | None = None
    """Which sees every request, where the store is a server."""

    def put(self, files: Mapping[str, bytes]) -> str:
        store = open_store(self.uri)
        for key, data in files.items():
            store.write(key, data)
        return self.uri

    def all(self, below: str = "") -> dict[str, bytes]:
        """What is there now."""
        store = open_store(self.uri)
        return {each.key[len(below) :]: store.read(each.key) for each in store.list(below)}

    def gets(self) -> list[str]:
        """The keys that were asked for whole or in part, and not listed or looked up."""
        assert self.proxy is not None
        root = self.uri.removeprefix("s3:/")
        paths = [request.target.partition("?")[0] for request in self.proxy.requests if request.method == "GET"]
        return [path.removeprefix(f"{root}/") for path in paths if path.startswith(f"{root}/")]


@pytest.fixture
def checkpoints_uri(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> str:
    """A place for checkpoints that the hosts reach, wherever they are."""
    if backend != by_turns.POOL:
        return f"file://{tmp_path / 'store'}"
    found: Objects = request.getfixturevalue("s3_objects")
    return found.uri


@pytest.fixture(params=["file", "localstack"])
def objects(request, tmp_path) -> Objects:
    """A store of the test's own, of each kind."""
    return Objects(f"file://{tmp_path / 'store'}") if request.param == "file" else request.getfixturevalue("s3_objects")


@pytest.fixture
def s3_objects(proxy) -> Objects:
    """A store of the test's own that is a server."""
    return Objects(f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy)
