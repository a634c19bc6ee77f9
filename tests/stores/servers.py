"""The servers that the laws of the store are tested on: real ones, started on free ports of the loopback interface.

Each ends with the process that started it, however that ends (`setpriv --pdeathsig`). Several test processes share one
of each, which this starts for as long as a command runs:

    python -m tests.stores.servers COMMAND…
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from botocore.config import Config
from botocore.session import Session

from tests.ports import free_port
from tests.shared_engine import run_with, side_by_side

LOCALSTACK = Path(__file__).parents[2] / ".venv-localstack" / "bin" / "python"
START_SECONDS = 300  # after which one is stuck, however slow the machine
BUCKET = "stores"
SHARED = "TEST_SERVERS"
"""The variable that names the servers that run already: JSON, kind -> the fields of `Server`."""


@dataclass(frozen=True)
class Server:
    """A server that speaks S3, and the credentials that it takes."""

    endpoint: str
    access_key: str = "tester"
    secret_key: str = "tester-secret"

    def client(self):
        """Another implementation of a client, to look at what the store did."""
        return Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
        }


@contextlib.contextmanager
def started(kind: str, make_folder: Callable[[str], Path]) -> Iterator[Server]:
    """The server of that kind, with its bucket: the one that all test processes share, or one of this process's own."""
    shared = json.loads(os.environ.get(SHARED, "{}"))
    if kind in shared:
        yield Server(**shared[kind])
        return
    with KINDS[kind](make_folder(kind)) as server:
        server.client().create_bucket(Bucket=BUCKET)
        yield server


@contextlib.contextmanager
def localstack(folder: Path) -> Iterator[Server]:
    """LocalStack's S3, which accepts any signature."""
    if not LOCALSTACK.exists():
        raise RuntimeError(f"{LOCALSTACK} is missing: run scripts/setup tests")
    port = free_port()
    environment = {
        "SERVICES": "s3",
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "GATEWAY_SERVER": "hypercorn",
        "EAGER_SERVICE_LOADING": "1",
        "STRICT_SERVICE_LOADING": "1",
        "DISABLE_EVENTS": "1",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "DNS_ADDRESS": "0",
        "TMPDIR": str(folder),
    }
    with running([str(LOCALSTACK), "-m", "localstack.runtime.main"], folder, environment, until="Running on"):
        yield Server(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def ceph(folder: Path) -> Iterator[Server]:
    """Ceph's radosgw, which checks signatures strictly, over a monitor and a daemon that keeps all in memory."""
    for program in ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin"):
        if not shutil.which(program):
            raise RuntimeError(f"{program} is missing: run scripts/setup tests")
    server = Server(f"http://127.0.0.1:{free_port()}")
    cluster, monitor, disk = str(uuid.uuid4()), f"v2:127.0.0.1:{free_port()}", str(uuid.uuid4())
    configuration = folder / "ceph.conf"
    configuration.write_text(CEPH_CONFIGURATION.format(folder=folder, cluster=cluster, monitor=monitor))
    for name in ("mon", "osd", "rgw", "run"):
        (folder / name).mkdir()
    environment = {"CEPH_CONF": str(configuration)}

    def run(*command: str) -> None:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"

    allow = ("--gen-key", "--cap", "mon", "allow *")
    run("ceph-authtool", "--create-keyring", "keyring", "-n", "mon.", *allow)
    run("ceph-authtool", "keyring", "-n", "client.admin", *allow, "--cap", "osd", "allow *")
    run("ceph-authtool", "keyring", "-n", "osd.0", "--gen-key", "--cap", "mon", "allow profile osd")
    run("monmaptool", "--create", "--fsid", cluster, "--addv", "a", f"[{monitor}]", "monmap")
    run("ceph-mon", "-i", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring")
    with contextlib.ExitStack() as daemons:
        daemons.enter_context(running(["ceph-mon", "-i", "a", "-f"], folder, environment))
        run("ceph", "osd", "new", disk)  # waits for the monitor, as radosgw-admin waits for the other
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        daemons.enter_context(running(["ceph-osd", "-i", "0", "-f"], folder, environment))
        new_user(run, "tester", server.access_key, server.secret_key)
        new_user(run, "stranger", "stranger", "stranger-secret")
        address = server.endpoint.removeprefix("http://")
        gateway = ["radosgw", "-f", "-n", "client.admin", "--log-to-stderr=true", "--debug-rgw=1"]
        gateway += [f"--rgw-frontends=beast endpoint={address} tcp_nodelay=1", f"--rgw-data={folder / 'rgw'}"]
        daemons.enter_context(running(gateway, folder, environment, until="starting handler"))
        yield server


def new_user(run, name: str, access_key: str, secret_key: str) -> None:
    keys = (f"--access-key={access_key}", f"--secret-key={secret_key}")
    run("radosgw-admin", "user", "create", f"--uid={name}", f"--display-name={name}", *keys)


CEPH_CONFIGURATION = """
[global]
fsid = {cluster}
mon host = {monitor}
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}/run
crash dir = {folder}/run
log file = {folder}/$name.log
admin socket = {folder}/run/$pid.asok
pid file =
osd objectstore = memstore
memstore device bytes = 4294967296
osd class load list = *
osd class default list = *
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail warn = 1
mon data avail crit = 1
paxos propose interval = 0.01
paxos min wait = 0.005
rgw thread pool size = 64
"""


@contextlib.contextmanager
def running(command: list[str], folder: Path, environment: Mapping[str, str], until: str = "") -> Iterator[None]:
    """A program that runs until the block ends, from when it has written `until`."""
    program = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ready = threading.Event()
    said: list[str] = []

    def follow() -> None:
        for line in program.stdout:
            if not ready.is_set():
                said.append(line)
                if until in line:
                    ready.set()
        ready.set()  # it has ended, and will not be ready

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        if until and not (ready.wait(START_SECONDS) and until in said[-1]):
            raise RuntimeError(f"{command[0]} did not start: {''.join(said)}")
        yield
    finally:
        program.kill()
        program.wait()
        follower.join()
        program.stdout.close()


KINDS = {"localstack": localstack, "ceph": ceph}


@contextlib.contextmanager
def variables() -> Iterator[dict[str, str]]:
    """One server of each kind, as the variable by which test processes share them."""
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="servers-")))

        def make_folder(name: str) -> Path:
            folder = root / name
            folder.mkdir()
            return folder

        servers = stack.enter_context(side_by_side([started(kind, make_folder) for kind in KINDS]))
        yield {SHARED: json.dumps(dict(zip(KINDS, map(asdict, servers), strict=True)))}


if __name__ == "__main__":
    sys.exit(run_with(variables(), sys.argv[1:]))
