"""What is said, and what is left, when the engine or the machine gives up under a job."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from estimator_sdk import Estimator, EstimatorError, JobFailed
from estimator_sdk.backends.docker import engine, reaper
from estimator_sdk.backends.supervised.job import wait_until_gone
from tests.chaos import leaks
from tests.conformance.jobs import container_of
from tests.waiting import SECONDS, kill, wait_for

MPI = {"mpi": {"enabled": True}}


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def script(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "train.py"
    path.write_text(source)
    return path


def left_of(client: docker.DockerClient, job_name: str) -> list[str]:
    chosen = {"label": f"{engine.JOB_LABEL}={job_name}"}
    containers = client.containers.list(all=True, filters=chosen, ignore_removed=True)
    return [each.name for each in (*containers, *client.networks.list(filters=chosen))]


class Engine:
    """An engine of the test's own, which it can kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/engine.sock"

    def start(self) -> docker.DockerClient:
        places = [f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid"]
        # A network of its own, for the machine's belongs to the engine that the other tests use.
        command = ["unshare", "--net", "dockerd", f"--host={self.url}", *places, "--iptables=false"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        return wait_for(self._answering, otherwise=lambda: (self.folder / "log").read_text()[-2000:])

    def _answering(self) -> docker.DockerClient | None:
        try:
            return docker.DockerClient(self.url, timeout=engine.ANSWER_SECONDS)
        except docker.errors.DockerException:
            return None

    def kill(self) -> None:
        """End it as a power cut would; its containers go on."""
        self._process.kill()
        self._process.wait()
        # It would wait for a containerd that is a zombie, where the machine's first process collects none.
        for pid in (self.folder / "pid", self.folder / "exec" / "containerd" / "containerd.pid"):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                kill(int(pid.read_text()))
            pid.unlink(missing_ok=True)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(120)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([each for each in mounts if each.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", place], check=True)


@pytest.fixture
def own_engine() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a short name, for the socket's path
        made = Engine(Path(folder))
        yield made
        made.stop()


def import_image(client: docker.DockerClient, folder: Path) -> str:
    """An image that is one static program: it says that it is up, and waits."""
    source = '#include <unistd.h>\nint main(void) { write(1, "up\\n", 3); for (;;) pause(); }\n'
    program = folder / "train"
    subprocess.run(["gcc", "-static", "-O1", "-o", str(program), "-xc", "-"], input=source, text=True, check=True)
    with tarfile.open(folder / "image.tar", "w") as tar:
        tar.add(program, arcname="usr/local/bin/train")
    client.api.import_image_from_file(str(folder / "image.tar"), repository="waits", tag="1")
    return "waits:1"


def test_an_engine_that_dies_in_mid_job_is_named_and_what_is_left_goes_when_it_is_back(
    own_engine, tmp_path, monkeypatch
):
    client = own_engine.start()
    monkeypatch.setenv("DOCKER_HOST", own_engine.url)
    image = import_image(client, tmp_path)
    job = Estimator(image_uri=image, backend="docker").fit(wait=False)
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    # The host's first words may be here before the engine has written down that it started it; what it does not know
    # of, it takes away no more.
    wait_for(lambda: client.containers.list(filters={"label": f"{engine.JOB_LABEL}={job.name}", "status": "running"}))
    own_engine.kill()
    # The engine may not have answered the call that started it.
    meanwhile = "(algo-1 ran|the containers were started)"
    said = rf"the Docker engine \(.*\) stopped answering while {meanwhile}; start it again"
    with pytest.raises(JobFailed, match=said):
        job.wait(SECONDS)
    client = own_engine.start()
    wait_for(lambda: not left_of(client, job.name))
    # What takes them away would wait for the engine for ever, which ends with this test.
    wait_for(lambda: not leaks.processes_of(job.name), otherwise=lambda: leaks.processes_of(job.name))


def test_what_the_engine_makes_after_the_end_of_the_supervisor_that_asked_for_it_goes_too(image):
    client, name = engine.connect(), f"late-{os.getpid()}"
    labels = {engine.JOB_LABEL: name, engine.OWNER_LABEL: "me"}
    made = reaper.Reaper(name, "me")
    with made.asking_for(f"{name}-network"):
        client.networks.create(f"{name}-network", labels=labels)
    with contextlib.suppress(InterruptedError), made.asking_for(f"{name}-algo-1"):
        raise InterruptedError("in the middle of it")
    made.end(is_done=True)
    wait_for(lambda: not left_of(client, name))  # it has looked once
    client.containers.create(image, ["true"], name=f"{name}-algo-1", labels=labels)
    assert made._process.wait(SECONDS) == 0
    assert left_of(client, name) == []


def test_an_engine_that_is_closed_to_the_user_is_one_sentence(tmp_path, image):
    """A user who is not in the group that owns the socket."""
    load = "import os; import docker, docker.transport; from estimator_sdk.backends.docker import engine"
    # Without its own folders on the path: they and the interpreter may lie where only root can enter.
    load += "; from estimator_sdk.errors import BackendError; str(BackendError('what that loads'))"
    program = f"{load}; os.setgroups([]); os.setgid(4242); os.setuid(4242); engine.connect()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert "BackendError: this user may not open the Docker engine's socket; join the group" in last
    assert "backend='process'" in last


def test_where_no_engine_has_ever_been_one_sentence_says_how_to_start_it():
    program = "from estimator_sdk.backends.docker import engine; engine.connect()"
    without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"]
    env = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    command = [*without, sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert "BackendError: no Docker engine answers (" in last
    assert "); start it (`systemctl start docker` or `dockerd`), or use backend='process'" in last


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 3 MiB for all that jobs leave."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=True)
    monkeypatch.setenv("ESTIMATOR_HOME", str(disk / "home"))
    yield disk
    wait_until_gone()
    # Those that take a job's containers away outlive its supervisor.
    wait_for(lambda: not leaks.processes_of(str(disk)), otherwise=lambda: leaks.processes_of(str(disk)))
    subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture(params=["process", "docker"])
def where(request: pytest.FixtureRequest, image: str) -> dict[str, str]:
    return {"backend": request.param, **({"image_uri": image} if request.param == "docker" else {})}


def test_a_log_that_fills_the_disk_ends_the_job_with_the_reason(small_disk, tmp_path, where):
    source = "while True: print('x' * 65535, flush=True)"
    with pytest.raises(JobFailed) as failed:
        Estimator(entry_point=script(tmp_path, source), instance_count=2, distribution=MPI, **where).fit(logs="none")
    assert "log of this rank could not be written: [Errno 28] No space left on device" in str(failed.value)
    assert failed.value.verdict.rank in (0, 1)
    wait_until_gone()
    assert left_of(engine.connect(), failed.value.job_name) == []


def test_a_disk_too_full_for_the_archives_is_a_failure_that_says_where_the_model_is(small_disk, tmp_path, where):
    source = "import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'wb').write(os.urandom(1_800_000))"
    with pytest.raises(JobFailed, match="outputs could not be written: .*No space left on device; what the") as failed:
        Estimator(entry_point=script(tmp_path, source), **where).fit(logs="none")
    kept = Path(failed.value.verdict.message.rpartition(" ")[2])
    assert (kept / "algo-1" / "model" / "weights").stat().st_size == 1_800_000
    assert not list(small_disk.rglob("*.tar.gz.new"))


def test_a_disk_that_is_full_before_the_start_is_one_sentence(small_disk, tmp_path, where):
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(4_000_000))
    with pytest.raises(EstimatorError, match="No space left on device") as refused:
        Estimator(entry_point=script(tmp_path, ""), **where).fit(logs="none")
    assert not isinstance(refused.value, JobFailed) and "\n" not in str(refused.value)


def test_a_rank_that_uses_up_its_hosts_memory_is_named(tmp_path, image):
    source = """
import os, time
hoard = []
while os.environ["RANK"] == "1":
    hoard.append(os.urandom(1 << 20))
time.sleep(60)
"""
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    estimator = Estimator(entry_point=script(tmp_path, source), image_uri=image, distribution=mpi, memory=0.25)
    with pytest.raises(JobFailed, match="rank 1 on algo-1 was killed because its host had no memory left") as failed:
        estimator.fit(logs="none")
    assert (failed.value.verdict.kind, failed.value.verdict.rank) == ("out_of_memory", 1)


def test_limits_are_what_the_script_and_the_engine_see(tmp_path, image):
    source = "import os, time; print(os.environ['SM_NUM_CPUS'], flush=True); time.sleep(600)"
    job = Estimator(entry_point=script(tmp_path, source), image_uri=image, cpus=0.5, memory=0.5).fit(wait=False)
    assert next(job.logs(stream="stdout", follow=True)).data == b"1\n"
    limits = container_of(job).attrs["HostConfig"]
    assert (limits["NanoCpus"], limits["Memory"], limits["ShmSize"]) == (500_000_000, 1 << 29, 1 << 28)
    job.stop()
    job.wait(SECONDS)


@pytest.mark.parametrize(("name", "value"), [("cpus", 10_000), ("memory", 1_000_000)])
def test_more_than_the_machine_has_is_refused_before_anything_starts(tmp_path, image, name, value):
    with pytest.raises(
        EstimatorError,
        match=f"{name}={re.escape(format(value, 'g'))} is more than the .* that the engine's machine has",
    ):
        Estimator(entry_point=script(tmp_path, ""), image_uri=image, **{name: value}).plan()


def test_a_gpu_that_is_not_there_is_one_sentence(tmp_path, image):
    with pytest.raises(EstimatorError, match="'local_gpu' needs a GPU, but this machine has none; use 'local'"):
        Estimator(entry_point=script(tmp_path, ""), image_uri=image, instance_type="local_gpu").plan()
