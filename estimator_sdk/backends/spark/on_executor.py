"""What each task of the barrier stage does on its executor, which has nothing of ours.

So Spark brings this module itself, pickled, and it imports only the standard library and pyspark.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

DONE = "done"
UNHEARD = "unheard"
"""What a task returns where the driver has not heard the first one."""
NO_ROOM = "no room: "
"""How that begins which a task returns where an executor cannot have a host; it goes on with where and why."""
GO = b"go\n"
"""What the driver answers to the first task."""
READY, BEGIN = b"ready\n", b"begin "
"""What a launcher says, and how the line begins that it is told then; it goes on with the host's GPUs."""
ANSWER_SECONDS = 60.0
_OF_SPARK = (
    "SPARK_",
    "PYSPARK_",
    "_PYSPARK_",
    "PYTHON_WORKER_",
    "PYTHON_DAEMON_",
    "PYTHON_UDF_",
    "_JAVA_OPTIONS",
    "JAVA_",
)
"""How the names of variables begin that Spark has set for its own processes, some of which are secrets."""


def work(given: dict[str, Any], software: Any) -> Callable[[Iterable[int]], list[str]]:  # noqa: ANN401 - a Broadcast
    """The function of a task; `software` broadcasts the archive of both packages.

    `given` has the driver's `door`, the `secret` in hex, the `mark` of the job, the text of the `launcher`, and how
    many `tasks` are one host, if that is said.
    """

    def run(numbers: Iterable[int]) -> list[str]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        own = context.partitionId()
        number, first = _place(context, given["tasks"])
        with socket.socket(socket.AF_UNIX) as room, contextlib.ExitStack() as until_over:
            mine, launcher = _about(context), None
            if own == first:
                room.bind(mine["room"])
                room.listen(len(context.getTaskInfos()))
                launcher = until_over.enter_context(Launcher(given["launcher"]))
                mine["failed"] = launcher.prepare(_settings(given, number, mine["address"]), software.value)
            # Each of these takes Spark a second, so what can be done before is done.
            about = [json.loads(text) for text in context.allGather(json.dumps(mine))]
            if found := [f"{each['executor']}: {each['failed']}" for each in about if each["failed"]]:
                return [NO_ROOM + found[0]]
            hosts = hosts_of(about, given["tasks"])
            is_heard = own == 0 and _tell(given, hosts)
            if "yes" not in context.allGather("yes" if is_heard else ""):
                return [UNHEARD]
            if launcher is not None:
                launcher.keep([gpu for task in hosts[number - 1]["tasks"] for gpu in about[task]["gpus"]])
            else:
                # Not at a barrier: an executor that waits at one for a task which Spark cancels ends with status 50.
                with contextlib.suppress(OSError):
                    room.connect(about[first]["room"])
                    room.recv(1)
        return [DONE]

    return run


def common(mark: str) -> str:
    """The folder that the hosts of a job on one machine share, whatever TMPDIR their executors have."""
    return f"/tmp/est-{mark}"


def hosts_of(tasks: Sequence[dict[str, Any]], of_each: int | None = None) -> list[dict[str, Any]]:
    """The hosts that tasks are: `of_each` is how many of one executor's are one.

    Without it, those of one executor are one host with as many slots. Where some executors have more tasks than others,
    they are several hosts with as many slots as all others have.

    >>> one, other = {"executor": "a:1", "address": "10.0.0.1"}, {"executor": "b:1", "address": "10.0.0.2"}
    >>> [host["tasks"] for host in hosts_of([one, other, one, other])]
    [[0, 2], [1, 3]]
    >>> [(host["name"], host["tasks"]) for host in hosts_of([one, one, other])]
    [('part-1@a:1', [0]), ('part-2@a:1', [1]), ('b:1', [2])]
    """
    found: dict[tuple[str, str], list[int]] = {}
    for number, task in enumerate(tasks):
        found.setdefault((task["executor"], task["address"]), []).append(number)
    slots = of_each or math.gcd(*map(len, found.values()))
    hosts = []
    for (executor, address), numbers in found.items():
        for first in range(0, len(numbers), slots):
            part = "" if len(numbers) == slots else f"part-{first // slots + 1}@"
            hosts.append({"name": part + executor, "address": address, "tasks": numbers[first : first + slots]})
    return sorted(hosts, key=lambda host: host["tasks"][0])


def proof(secret: str, text: str) -> str:
    """The code that shows that a text comes from who has the secret."""
    return hmac.new(bytes.fromhex(secret), text.encode(), hashlib.sha256).hexdigest()


def _place(context: Any, of_each: int | None) -> tuple[int, int]:  # noqa: ANN401 - a BarrierTaskContext
    """The number of the host that this task is of, and the first task of that."""
    known = [{"executor": info.address, "address": ""} for info in context.getTaskInfos()]
    own = context.partitionId()
    return next((n, host["tasks"][0]) for n, host in enumerate(hosts_of(known, of_each), 1) if own in host["tasks"])


def _about(context: Any) -> dict[str, Any]:  # noqa: ANN401 - a BarrierTaskContext
    """What this task is on; an executor is known by where Spark finds it.

    The `room` is a socket's name on its machine, where the other tasks of a host wait for the first to end.
    """
    at = context.getTaskInfos()[context.partitionId()].address
    address = ""
    with contextlib.suppress(OSError):
        address = socket.gethostbyname(at.rpartition(":")[0] or at)
    gpu = context.resources().get("gpu")
    room = f"\0est-{os.urandom(8).hex()}"
    return {"executor": at, "address": address, "gpus": list(gpu.addresses) if gpu else [], "room": room, "failed": ""}


def _tell(given: dict[str, Any], hosts: list[dict[str, Any]]) -> bool:
    """Tell the driver of the hosts; returns whether it has heard that."""
    text = json.dumps(hosts)
    try:
        with socket.create_connection(tuple(given["door"]), ANSWER_SECONDS) as sock:
            sock.sendall(f"{proof(given['secret'], text)} {text}\n".encode())
            return sock.recv(len(GO)) == GO
    except OSError:
        return False


def _settings(given: dict[str, Any], number: int, address: str) -> dict[str, Any]:
    """What a launcher is told of its host."""
    host, port = given["door"]
    return {
        "own": f"{tempfile.gettempdir()}/est-{given['mark']}-{number}",
        "executor": os.getppid(),  # the daemon of Spark's Pythons, or the machine of Java itself
        "keeper": {
            "name": f"machine-{number}",
            "secret": given["secret"],
            "supervisor": f"{host}:{port}",
            "common": common(given["mark"]),
            "address": address,
            "search_path": [each for each in sys.path if Path(each).is_absolute() and Path(each).is_dir()],
        },
    }


class Launcher:
    """The program that has a host, whose task has ended when the block is left."""

    def __init__(self, program: str) -> None:
        self._said = os.memfd_create("said")  # and no file: the disk may be full
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd="/",
            env=_environment(),
            start_new_session=True,  # Spark kills the group of this process
        )

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError), self._process:  # which waits for its end
            os.close(self._said)

    def prepare(self, settings: dict[str, Any], software: bytes) -> str:
        """Have everything ready for the host that is described. Returns why that cannot be, or nothing."""
        told = {**settings, "size": len(software)}
        self._tell(json.dumps(told).encode() + b"\n" + software)
        assert self._process.stdout is not None
        said: bytes = self._process.stdout.readline()
        return "" if said == READY else said.decode(errors="replace").strip() or self._last_words()

    def keep(self, gpus: list[str]) -> None:
        """Have the host until its job ends. Raises RuntimeError with what was said, if that does not do well."""
        self._tell(BEGIN + f"{','.join(gpus)}\n".encode())
        if self._process.wait() != 0:
            raise RuntimeError(self._last_words())

    def _tell(self, words: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(words)
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._process.wait()
        os.lseek(self._said, 0, os.SEEK_SET)
        with open(self._said, "rb", closefd=False) as file:
            return file.read().decode(errors="replace")


def _environment() -> dict[str, str]:
    """What the keeper has of this process: first of all its Python, and what Spark has brought for imports."""
    from pyspark import SparkFiles

    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_SPARK)}
    kept["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    brought = [path for path in sys.path if path.startswith(SparkFiles.getRootDirectory())]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (*brought, kept.get("PYTHONPATH"))))
    return kept
