"""What the laws do to jobs from outside, and what they look for afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container
from estimator_container.contract.event_decoding import KINDS
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.mesh.pulse import BEAT_SECONDS, PATIENT_BEATS
from estimator_container.runtime.children import descendants

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends.docker import engine
from tests import spark
from tests.ssh import seen
from tests.waiting import SECONDS, freeze, kill, state_of, wait_for, wait_until_stopped

HANG_FLOORS = (1.5, 3.0, 6.0)
"""Seconds, where a job has 30; a rank has a twelfth of them to say where it is."""
SILENCE_BOUND = 5.0  # seconds from the moment that a host falls silent to the end of the job on all hosts
# As the frameworks do: rank 0 serves at MASTER_PORT, or each worker at its own address of TF_CONFIG.
MEET = """
import json, os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if "TF_CONFIG" in os.environ:
    config = json.loads(os.environ["TF_CONFIG"])
    places = [place.rsplit(":", 1) for place in config["cluster"]["worker"]]
    assert config == {"cluster": config["cluster"], "task": {"type": "worker", "index": rank}}, config
else:
    places = [[os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]]]
serves = rank < len(places)
if serves:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", int(places[rank][1])))
    server.listen(size)

def reach(address, port):
    deadline = time.monotonic() + 180
    while True:
        try:
            return socket.create_connection((address, int(port)))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)

links = [reach(*place) for place in places]
for link in links:
    link.sendall(f"{os.environ['SAGEMAKER_JOB_NAME']} {rank}\\n".encode())
guests = [server.accept()[0] for _ in range(size)] if serves else []
heard = sorted(guest.makefile().readline() for guest in guests)
assert heard == [f"{os.environ['SAGEMAKER_JOB_NAME']} {each}\\n" for each in range(size) if serves], heard
"""
ELSEWHERE = {"ssh": seen.toolkits, "spark": spark.toolkits}
"""Backends whose hosts have their files elsewhere -> what finds the toolkit of each, and its base directory."""
UP_AND_WAIT = """
import time
from mpi4py import MPI
print("up", flush=True)
time.sleep(600)
"""


def less_of_scheduler(names, backend: str) -> set[str]:
    """The names of variables without those that a scheduler, or a login, gives everything that it starts."""
    of_login = {"USER", "LOGNAME", "MAIL", "SHLVL", "_", "SHELL"}
    if backend == "ssh":
        return {*names} - of_login
    of_slurm = re.compile(r"SLURM|(SRUN_DEBUG|USER|LOGNAME|TMPDIR)$|(I_MPI_)?HYDRA_|(OMPI|PRTE)_MCA_plm_slurm_args$")
    return {name for name in names if backend != "slurm" or not of_slurm.match(name)}


def processes_of(job_folder: Path) -> list[str]:
    """The processes of this machine that have anything to do with the job."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(job_folder).encode() in command + environ and state != "Z":
            found.append(f"{process.name} {command!r}")
    return found


def left_of(job: Job, patience: float = SECONDS) -> list[str]:
    """What is still there of the job so many seconds from now; returns as soon as nothing is."""
    left: list[str] = []

    def is_nothing() -> bool:
        left[:] = left_now(job)
        return not left

    with contextlib.suppress(AssertionError):
        wait_for(is_nothing, patience)
    return left


def left_by_client(job: Job) -> list[str]:
    """What is still there of the job when the client that waited for it has ended, but where its supervisor follows."""
    return left_of(job) if job.backend in ("slurm", "ssh") else left_now(job)


def left_now(job: Job) -> list[str]:
    """Processes, containers and networks of the job that are still there."""
    if job.backend == "ssh":
        return [f"{pid} {words!r}" for pid, words, _ in seen.processes(job)]
    left = processes_of(job.folder)
    if job.backend == "spark":
        left += [f"{pid} {words!r}" for pid, words, _ in spark.processes(job)]
    if job.backend == "docker":
        client = engine.connect()
        chosen = {"label": f"{engine.JOB_LABEL}={job.name}"}
        left += [each.name for each in client.containers.list(all=True, filters=chosen, ignore_removed=True)]
        left += [each.name for each in client.networks.list(filters=chosen)]
    return left


def kill_host(job: Job, host: str) -> None:
    """End a host as a power cut would: nothing of it can say goodbye."""
    signal_host(job, host, signal.SIGKILL)


def signal_host(job: Job, host: str, signum: signal.Signals) -> None:
    """Send a signal to a host's toolkit; one that cannot be caught has had its effect on return."""
    signals_to(job, host)(signum)


def signals_to(job: Job, host: str) -> Callable[[signal.Signals], None]:
    """What sends a signal to a host's toolkit as `signal_host` does, for who has no time to look for it then."""
    if job.backend == "docker":
        container = container_of(job, host)
        return lambda signum: container.kill(signum.name)
    toolkit = toolkit_of(job, host)
    return lambda signum: kill(toolkit) if signum == signal.SIGKILL else os.kill(toolkit, signum)


def toolkit_of(job: Job, host: str) -> int:
    """The pid of a host's toolkit: its base directory is the host's."""
    if job.backend in ELSEWHERE:
        return ELSEWHERE[job.backend](job)[host][0]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            environ = (process / "environ").read_bytes()
        except OSError:
            continue
        is_toolkit = command.endswith(b"/estimator_container\0train\0") and not command.startswith(b"srun")
        if is_toolkit and f"SAGEMAKER_BASE_DIR={base_directory(job, host)}\0".encode() in environ:
            found.append(int(process.name))
    assert found, f"{host} does not run"
    return seen.without_forks(found)[0]


def wait_until_up(job: Job, ranks: int) -> None:
    """Until every rank has said `up`."""
    missing = set(range(ranks))
    for line in job.logs(stream="stdout", follow=True):
        missing -= {line.rank} if line.data == b"up\n" else set()
        if not missing:
            return
    raise AssertionError(f"the job ended before ranks {missing} were up: {job.why()}")


def base_directory(job: Job, host: str, attempt: int | None = None) -> Path:
    """A host's `/opt/ml`, or what is left of it of an attempt that was followed by another."""
    is_over = attempt is not None and attempt < job._started.record().attempt
    below = Path(f"attempts/{attempt}/hosts" if is_over else "hosts", host)
    if job.backend not in ELSEWHERE:
        return job.folder / below
    running = {} if is_over else ELSEWHERE[job.backend](job)
    return running[host][1] if host in running else (seen.folder(job) if job.backend == "ssh" else job.folder) / below


def tell(job: Job, name: str, host: str = "algo-1") -> None:
    """Make the file that a script waits for."""
    (base_directory(job, host) / "output" / "data" / name).touch()


def ranks_with_steps(found: dict[str, Any]) -> set[tuple[int, int]]:
    """Those whose steps a timeline has: the numbers of the host and of the rank, both from 1."""
    return {(each["pid"], each["tid"]) for each in found["traceEvents"] if each.get("cat") == "steps"}


def events(job: Job, name: str, host: str = "algo-1", attempt: int | None = None) -> list[dict[str, Any]]:
    """The events of that name that a host has told so far."""
    assert name in KINDS, f"nobody sends {name!r}"
    data = (base_directory(job, host, attempt) / "output" / "logs" / "frames").read_bytes()
    found = [json.loads(frame.data) for frame in FrameParser().feed(data) if frame.stream == EVENT]
    return [event for event in found if event["event"] == name]


def supervisor_of(job: Job) -> int:
    """The pid of the job's supervisor."""
    return seen.supervisor(job) if job.backend == "ssh" else job._started.record().supervisor.pid


def agent_of(job: Job) -> int:
    """The pid of the job's checkpoint agent."""
    supervisor = spark.parent_of(toolkit_of(job, "algo-1")) if job.backend == "spark" else supervisor_of(job)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            argv = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == supervisor and any(word.endswith(b"checkpoints/agent.py") for word in argv):
            return int(process.name)
    raise AssertionError("no agent runs")


def freeze_host(job: Job, host: str) -> None:
    """Stop everything on a host, connections left as they are."""
    freeze_hosts(job, host)


def freeze_hosts(job: Job, *hosts: str) -> None:
    """The same on several, so soon one after the other that none misses another before."""
    if job.backend == "docker":
        containers = [container_of(job, host) for host in hosts]
        with stopped(*(container.attrs["State"]["Pid"] for container in containers if len(hosts) > 1)):
            for container in containers:
                freeze(container.pause)
        return
    toolkits = [toolkit_of(job, host) for host in hosts]
    for toolkit in toolkits:
        os.kill(toolkit, signal.SIGSTOP)
    for toolkit in toolkits:
        wait_until_stopped(toolkit)
        for pid in descendants(toolkit):
            with contextlib.suppress(ProcessLookupError):  # one that ends by itself, as an installer's do
                os.kill(pid, signal.SIGSTOP)
                wait_for(lambda pid=pid: state_of(pid) in ("T", "t", "Z", ""))


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that stand still meanwhile, all from the same moment on."""
    try:
        for pid in pids:
            assert pid, "a container has ended"  # 0 would be all of this process's group
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in filter(None, pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def drop_packets(job: Job, host: str) -> None:
    """Drop every packet from and to a container, and tell nobody."""
    pid = container_of(job, host).attrs["State"]["Pid"]
    for chain in ("INPUT", "OUTPUT"):
        command = ["nsenter", "-t", str(pid), "-n", "iptables", "-I", chain, "-j", "DROP"]
        subprocess.run(command, check=True, capture_output=True)


def container_of(job: Job, host: str = "algo-1") -> Container:
    """A host's container that runs; its first words may be here before the engine has written down that it does."""
    chosen = {"label": f"{engine.JOB_LABEL}={job.name}", "name": f"-{host}"}
    client = engine.connect()
    (container,) = wait_for(lambda: client.containers.list(filters=chosen))
    return container


def ends_by_hang(
    made: Callable[[float], Estimator], shows: Callable[[Job], bool] = lambda job: True, floor: float = HANG_FLOORS[0]
) -> tuple[Job, Verdict]:
    """The job, whose ranks stand still, so that it must fail, and why it did; `made` makes it for a hang floor.

    On a busy machine ranks may have no time to say where they are, or none to be seen twice, as `shows` tells: then
    there is another job, which has more.
    """
    job = made(floor).fit(wait=False)
    *_, last = HANG_FLOORS
    try:
        status = job.wait(30.0 + 8 * floor if floor < last else SECONDS)
    except JobFailed as failed:
        if shows(job) or floor == last:
            return job, failed.verdict
    else:
        job.stop()
        with contextlib.suppress(JobFailed):
            job.wait(SECONDS)
        assert (status, floor < last) == ("InProgress", True), f"nobody is accused: the job is {status}"
    return ends_by_hang(made, shows, HANG_FLOORS[HANG_FLOORS.index(floor) + 1])


def assert_falls_silent(job: Job, host: str, stretched: Callable[[float], float]) -> None:
    """What was just done to a host ends the job in time, with an error that names it, and nothing is left.

    On a busy machine hosts are patient with each other, for as many beats as `pulse` has.
    """
    done = time.monotonic()
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    patience = PATIENT_BEATS * BEAT_SECONDS if stretched(1.0) > 1.3 else 0.0
    assert time.monotonic() - done < stretched(SILENCE_BOUND) + patience
    verdict = failed.value.verdict
    assert (verdict.kind, verdict.host) == ("host_lost", host), verdict
    assert left_of(job) == []
