"""Whoever can reach a port of a host: floods, strangers that are slow or lie, and what of ours listens where."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from estimator_container.contract.names import HOST_ADDRESSES, HOSTS_PER_MACHINE, LISTEN_FD, WORLD_TIMEOUT
from estimator_container.mesh import handshake
from estimator_container.mesh.mesh import Member, MeshLeader, MeshWorker
from estimator_container.mesh.unproven_connections import LIMIT
from estimator_container.runtime.children import descendants
from estimator_container.runtime.loop import Loop
from estimator_container.runtime.wire import pack
from hypothesis import given, strategies

from estimator_sdk import Job
from estimator_sdk.estimator import launch
from tests.conformance.jobs import toolkit_of
from tests.waiting import SECONDS, wait_for

DESCRIPTORS = 256
"""That the first host of an attacked job may have open."""
CROWD = 400
"""Connections that an attacker holds open."""
LISTENS = "0A"  # of /proc/net/tcp


@dataclass
class Waiting:
    """A job of two hosts, the first of which waits for the other one."""

    job: Job
    door: Path
    """The second host comes when this file is there."""

    @property
    def leader(self) -> int:
        return toolkit_of(self.job, "algo-1")

    @property
    def address(self) -> tuple[str, int]:
        """Where the first host listens."""
        environ = Path(f"/proc/{self.leader}/environ").read_bytes().split(b"\0")
        (given,) = (each for each in environ if each.startswith(HOST_ADDRESSES.encode()))
        address, _, port = json.loads(given.partition(b"=")[2])["algo-1"].partition(":")
        return address, int(port)

    def descriptors(self) -> int:
        """How many the first host has open."""
        return len(list(Path(f"/proc/{self.leader}/fd").iterdir()))


@pytest.fixture
def waiting(script, tmp_path) -> Iterator[Callable[..., Waiting]]:
    started: list[Job] = []

    def start(**arguments) -> Waiting:
        door = tmp_path / "door"
        plan = script.estimator("print('done')", hosts=2, **arguments).plan()
        limited = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")
        late = ("sh", "-c", f'until [ -e {door} ]; do sleep 0.02; done; exec "$@"', "sh")
        first, second = (
            replace(host, argv=(*before, *host.argv)) for host, before in zip(plan.hosts, (limited, late), strict=True)
        )
        started.append(launch.run(replace(plan, hosts=(first, second)), wait=False, logs="none"))
        made = Waiting(started[-1], door)
        wait_for(lambda: is_listening(made))
        return made

    yield start
    for job in started:
        job.stop()


def is_listening(made: Waiting) -> bool:
    try:
        return _listens(*made.address)
    except (AssertionError, ValueError):
        return False  # it is being started


def _listens(address: str, port: int) -> bool:
    there = struct.pack("=I", struct.unpack("!I", socket.inet_aton(address))[0]).hex().upper()
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1:4:2] == [f"{there}:{port:04X}", LISTENS] for line in lines)


FLOOD = """
import itertools, resource, socket, sys
address, words, held = (sys.argv[1], int(sys.argv[2])), bytes.fromhex(sys.argv[3]), int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
ring = []
for number in itertools.count():
    one = socket.socket()
    one.settimeout(2)
    try:
        one.connect(address)
        one.send(words)
    except OSError:
        pass
    ring.append(one)
    if number == held + 100:
        print("crowd", flush=True)
    if len(ring) > held:
        ring.pop(0).close()
"""
"""Connects as often as it can, says the same each time, and holds so many connections open."""


@contextmanager
def flood(address: tuple[str, int], words: bytes, held: int) -> Iterator[None]:
    """From when so many have been connected until the end of the block."""
    argv = [sys.executable, "-I", "-S", "-c", FLOOD, address[0], str(address[1]), words.hex(), str(held)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as attacker:
        assert attacker.stdout is not None
        try:
            attacker.stdout.readline()
            yield
        finally:
            attacker.kill()


HELLO = pack(["hello", "algo-2", "00" * 32])
WORDS = {
    "says nothing": b"",
    "says half a message": HELLO[:7],
    "introduces itself": HELLO,
    "lies": HELLO + pack(["proof", handshake.code(b"a guess", "worker", "algo-2", "", "00" * 32)]),
    "says what is no message": b"GET / HTTP/1.1\r\nHost: algo-1\r\n\r\n",
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_a_flood_of_strangers_keeps_no_host_out(waiting, out, words):
    made = waiting()
    with flood(made.address, words, CROWD):
        assert made.descriptors() < LIMIT + 40
        made.door.touch()
        assert made.job.wait(SECONDS) == "Completed"
    assert out(made.job) == b"done\ndone\n"


def test_a_flood_of_short_connections_keeps_no_world_from_starting(waiting, out):
    made = waiting(processes=1)
    with flood(made.address, b"", held=1):
        made.door.touch()
        assert made.job.wait(SECONDS) == "Completed"
    assert out(made.job) == b"done\ndone\n"


def test_strangers_that_hold_on_are_turned_away_in_time(waiting, out):
    made = waiting()
    with ExitStack() as held:
        for _ in range(10):
            held.enter_context(socket.create_connection(made.address))
        slow = held.enter_context(socket.create_connection(made.address))
        slow.settimeout(20)
        for byte in HELLO[:3]:  # and no more
            slow.send(bytes([byte]))
        assert slow.recv(1) == b""
    made.door.touch()
    assert made.job.wait(SECONDS) == "Completed"


def test_when_all_hosts_are_there_nobody_listens_for_more(script, tmp_path):
    stop = tmp_path / "stop"
    source = f"import os, time\nprint('up', flush=True)\nwhile not os.path.exists({str(stop)!r}): time.sleep(0.02)"
    job = script.estimator(source, hosts=2).fit(wait=False, logs="none")
    for number, _ in enumerate(job.logs(stream="stdout", follow=True), 1):
        if number == 2:
            break
    made = Waiting(job, stop)
    address = made.address
    still = _listens(*address)
    refused = socket.socket().connect_ex(address)
    stop.touch()
    assert job.wait(SECONDS) == "Completed"
    assert (still, refused) == (False, errno.ECONNREFUSED)


@pytest.mark.parametrize(("hosts", "processes"), [(1, None), (2, None), (1, 2), (2, 1)])
def test_no_descriptor_of_ours_reaches_a_rank(script, out, hosts, processes):
    """`ls` itself has one more: the folder that it lists."""
    found = script.run(
        {"train.sh": "echo $(ls /proc/self/fd)"}, entry_point="train.sh", hosts=hosts, processes=processes
    )
    assert out(found) == b"0 1 2 3\n" * hosts * (processes or 1)


# What of Open MPI listens where. That of ranks and daemons at all addresses of IPv4 cannot be turned off.


@pytest.mark.parametrize(
    ("hosts", "processes", "daemons", "ranks"),
    [
        (1, 2, {"127.0.0.1", "0.0.0.0"}, set()),
        (2, 1, {"127.0.0.1", "0.0.0.0"}, {"0.0.0.0", "[::]"}),
    ],
)
def test_no_more_of_a_world_listens_than_it_needs(script, tmp_path, hosts, processes, daemons, ranks):
    stop = tmp_path / "stop"
    source = f"""
import os, time
from mpi4py import MPI
MPI.COMM_WORLD.allreduce(1)
print(os.getpid(), flush=True)
while not os.path.exists({str(stop)!r}): time.sleep(0.02)
"""
    job = script.estimator(source, hosts=hosts, processes=processes).fit(wait=False, logs="none")
    pids = set()
    for line in job.logs(stream="stdout", follow=True):
        pids.add(int(line.data))
        if len(pids) == hosts * processes:
            break
    all_of_job = set(descendants(job._started.record().supervisor.pid))
    found = {pid: listening(pid) for pid in all_of_job}
    stop.touch()
    assert job.wait(SECONDS) == "Completed"
    assert set().union(*(found[pid] for pid in pids)) == ranks
    assert set().union(*(found[pid] for pid in all_of_job - pids)) == daemons


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens, as `ss` shows them."""
    shown = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[3].rpartition(":")[0] for line in shown if f"pid={pid}," in line}


# Hosts without a secret, as another SDK submits them to the service.


@dataclass
class Bare:
    """Hosts that have nothing but the service's own files."""

    folder: Path
    hyperparameters: Mapping[str, object]
    environment: Mapping[str, str]

    def run(self, source: str) -> dict[str, tuple[int, str, str]]:
        """Each host's exit code, what it showed, and its failure file."""
        (self.folder / "train.py").write_text(source)
        with socket.create_server(("127.0.0.1", 0)) as door:
            port = door.getsockname()[1]
            addresses = {"algo-1": f"127.0.0.1:{port}", "algo-2": f"127.0.0.2:{port}"}
            hosts = {name: self._start(name, addresses, door.fileno()) for name in addresses}
        return {name: self._result(name, host) for name, host in hosts.items()}

    def _start(self, name: str, addresses: dict[str, str], door: int) -> subprocess.Popen[str]:
        config = self.folder / name / "input" / "config"
        config.mkdir(parents=True)
        written = {"sagemaker_program": "train.py", "sagemaker_submit_directory": str(self.folder / "train.py")}
        cluster = {"current_host": name, "hosts": ["algo-1", "algo-2"], "current_instance_type": "ml.m5.xlarge"}
        for file, content in (
            ("hyperparameters", {**written, **{key: json.dumps(value) for key, value in self.hyperparameters.items()}}),
            ("resourceconfig", {**cluster, "network_interface_name": "lo"}),
            ("inputdataconfig", {}),
        ):
            (config / f"{file}.json").write_text(json.dumps(content))
        inherited = {LISTEN_FD: str(door)} if name == "algo-1" else {}
        environment = {
            **os.environ,
            **self.environment,
            "SAGEMAKER_BASE_DIR": str(self.folder / name),
            "TRAINING_JOB_NAME": "bare",
            HOST_ADDRESSES: json.dumps(addresses),
            HOSTS_PER_MACHINE: "2",
            WORLD_TIMEOUT: "60",
            **inherited,
        }
        argv = [sys.executable, "-m", "estimator_container", "train"]
        passed = [int(fd) for fd in inherited.values()]
        return subprocess.Popen(argv, env=environment, pass_fds=passed, stdout=subprocess.PIPE, text=True)

    def _result(self, name: str, host: subprocess.Popen[str]) -> tuple[int, str, str]:
        shown, _ = host.communicate(timeout=120)
        failure = self.folder / name / "output" / "failure"
        return host.returncode, shown, failure.read_text() if failure.exists() else ""


MPI = {"sagemaker_mpi_enabled": True}
HELLO_FROM = "import os; print(os.environ['SM_CURRENT_HOST'], os.environ.get('WORLD_SIZE'))"


def test_hosts_that_need_no_world_need_no_secret(tmp_path):
    found = Bare(tmp_path, {}, {}).run(HELLO_FROM)
    for name, (code, shown, failure) in found.items():
        assert (code, failure) == (0, ""), found
        assert f"{name} None" in shown


def test_hosts_of_a_world_without_a_secret_are_told_how_to_get_one(tmp_path):
    found = Bare(tmp_path, MPI, {}).run(HELLO_FROM)
    assert all(code for code, _, _ in found.values())
    assert all("channel 'estimator-world'" in failure for _, _, failure in found.values()), found
    assert all('environment={"ESTIMATOR_TRUST_NETWORK": "1"}' in failure for _, _, failure in found.values())


def test_a_world_in_a_network_that_the_user_trusts_needs_no_secret(tmp_path):
    found = Bare(tmp_path, MPI, {"ESTIMATOR_TRUST_NETWORK": "1"}).run(HELLO_FROM)
    assert [(code, failure) for code, _, failure in found.values()] == [(0, ""), (0, "")], found
    assert all(f"{name} 2" in shown for name, (_, shown, _) in found.items())


# What a stranger may say, in any form.

BYTES = strategies.binary(max_size=64)
FIELDS = strategies.lists(strategies.text(strategies.characters(exclude_characters="\0", codec="utf-8"), max_size=8))
MESSAGES = strategies.one_of(
    BYTES,
    FIELDS.filter(bool).map(pack),
    strategies.tuples(strategies.sampled_from(["hello", "proof", "challenge"]), FIELDS).map(
        lambda message: pack([message[0], "algo-2", *message[1]])
    ),
    BYTES.map(lambda data: struct.pack("<I", len(data)) + data),
)


def test_whatever_a_stranger_says_it_does_not_join_and_the_host_does(loop):
    @given(said=strategies.lists(MESSAGES, max_size=4))
    def check(said):
        joined, lost = [], []
        sock = socket.create_server(("", 0))
        address = ("127.0.0.1", sock.getsockname()[1])
        leader = MeshLeader(loop, Member("algo-1", ("algo-2",), b"secret"), Joining(joined, []), sock)
        with socket.create_connection(address) as stranger:
            stranger.send(b"".join(said))
            for _ in range(3):  # to be accepted, to be read, to be answered
                run_round(loop)
            assert joined == []
            member, late = Member("algo-2", ("algo-1",), b"secret"), time.monotonic() + 20
            worker = MeshWorker(loop, member, Joining(joined, lost), lambda: address, late)
            loop.run_until(lambda: len(joined) == 2 or bool(lost))
        assert sorted(joined) == ["algo-1", "algo-2"]
        worker.close()
        leader.close()

    check()


def run_round(loop: Loop) -> None:
    over: list[bool] = []
    loop.after(0.0, lambda: over.append(True))
    loop.run_until(lambda: bool(over))


class Joining:
    """Keeps who has joined and who is lost, and no messages."""

    def __init__(self, joined, lost):
        self.on_joined = joined.append
        self.on_lost = lambda host, silent: lost.append(host)

    def on_message(self, host, message):
        pass


@pytest.fixture
def loop() -> Iterator[Loop]:
    yield Loop()
    signal.set_wakeup_fd(-1)
