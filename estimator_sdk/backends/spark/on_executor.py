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
GO = b"go\n"
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
        about = [json.loads(text) for text in context.allGather(json.dumps(_about(context)))]
        hosts = hosts_of(about, given["tasks"])
        number, host = next(found for found in enumerate(hosts, 1) if own in found[1]["tasks"])
        first = host["tasks"][0]
        with socket.socket(socket.AF_UNIX) as room:
            if own == first:
                room.bind(about[first]["room"])
                room.listen(len(about))
            is_heard = own == 0 and _tell(given, hosts)
            if "yes" not in context.allGather("yes" if is_heard else ""):
                return [UNHEARD]
            if own == first:
                gpus = [gpu for task in host["tasks"] for gpu in about[task]["gpus"]]
                _keep(given, software.value, number, host["address"], gpus)
            else:
                # Not at a barrier: an executor that waits at one for a task which Spark cancels ends with status 50.
                with contextlib.suppress(OSError):
                    room.connect(about[first]["room"])
                    room.recv(1)
        return [DONE]

    return run


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
    return {"executor": at, "address": address, "gpus": list(gpu.addresses) if gpu else [], "room": room}


def _tell(given: dict[str, Any], hosts: list[dict[str, Any]]) -> bool:
    """Tell the driver of the hosts; returns whether it has heard that."""
    text = json.dumps(hosts)
    try:
        with socket.create_connection(tuple(given["door"]), ANSWER_SECONDS) as sock:
            sock.sendall(f"{proof(given['secret'], text)} {text}\n".encode())
            return sock.recv(len(GO)) == GO
    except OSError:
        return False


def _keep(given: dict[str, Any], software: bytes, number: int, address: str, gpus: list[str]) -> None:
    """Have a host until its job ends. Raises RuntimeError with what its launcher has said, if that does not do well."""
    host, port = given["door"]
    told = {
        "own": f"{tempfile.gettempdir()}/est-{given['mark']}-{number}",
        "executor": os.getppid(),  # the daemon of Spark's Pythons, or the machine of Java itself
        "size": len(software),
        "keeper": {
            "name": f"machine-{number}",
            "secret": given["secret"],
            "supervisor": f"{host}:{port}",
            "common": f"/tmp/est-{given['mark']}",
            "address": address,
            "search_path": [each for each in sys.path if Path(each).is_absolute() and Path(each).is_dir()],
        },
    }
    with tempfile.TemporaryFile() as said:
        launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", given["launcher"]],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            cwd="/",
            env=_environment(gpus),
            start_new_session=True,  # Spark kills the group of this process
        )
        assert launcher.stdin is not None
        with contextlib.suppress(BrokenPipeError), launcher.stdin as pipe:
            pipe.write(json.dumps(told).encode() + b"\n" + software)
            pipe.flush()
            launcher.wait()
        if launcher.wait() != 0:
            said.seek(0)
            raise RuntimeError(said.read().decode(errors="replace"))


def _environment(gpus: list[str]) -> dict[str, str]:
    """What the keeper has of this process: first of all its Python, and what Spark has brought for imports."""
    from pyspark import SparkFiles

    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_SPARK)}
    kept["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    brought = [path for path in sys.path if path.startswith(SparkFiles.getRootDirectory())]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (*brought, kept.get("PYTHONPATH"))))
    if gpus:
        kept["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return kept
