"""A Spark session of a test process, whose executors are on this machine, and what runs there of a job."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_sdk import Job
from estimator_sdk.backends.spark.session import COMING
from tests.ssh.seen import without_forks

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROOM = 32
"""Slots of a session that has room for any job of a test."""
EXECUTORS, CORES = 2, 2
SLOTS = EXECUTORS * CORES
"""Those of a session with executors of its own."""
START_SECONDS = 240.0
"""That three machines of Java and the processes of a world may take where much else runs."""
PATIENT_JAVA = f"{QUICK_JAVA} -D{COMING}={START_SECONDS:.0f}s"
"""The same, for a session whose own program says nothing of how long its executors may take."""
_TOOLKIT = b"/estimator_container\0train\0"


def on_loopback(master, **settings):
    """A session that no other machine can reach, of the context alone: what Spark has beside that takes seconds."""
    from pyspark import SparkConf, SparkContext

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        **settings,
    }
    return SparkContext(conf=SparkConf().setMaster(master).setAppName("tests").setAll(settings.items()))


def environment(folder):
    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": f"{folder}/work",
        "SPARK_LOCAL_DIRS": f"{folder}/local",
    }


@contextlib.contextmanager
def session(folder, master, **settings) -> Iterator[object]:
    """One for a block, after which no machine of Java is left."""
    from pyspark import SparkContext

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        patch.setattr(sys, "path", [*sys.path])  # to which Spark adds a folder of its files
        on_interrupt = signal.getsignal(signal.SIGINT)  # Spark sets its own
        context = on_loopback(master, **settings)
        yield context
        context.stop()
        signal.signal(signal.SIGINT, on_interrupt)
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        gateway.shutdown()
        gateway.proc.stdin.close()  # by which the machine of Java knows that it is over
        gateway.proc.wait()


def toolkits(job: Job) -> dict[str, tuple[int, Path]]:
    """Host -> the process of its toolkit, and its base directory on its executor."""
    running = {pid: variables for pid, words, variables in processes(job) if words.endswith(_TOOLKIT)}
    found = {}
    for pid in without_forks(running):
        (base,) = [each for each in running[pid].split(b"\0") if each.startswith(b"SAGEMAKER_BASE_DIR=")]
        place = Path(base.decode().partition("=")[2])
        with contextlib.suppress(OSError):
            config = json.loads((place / "input/config/resourceconfig.json").read_text())
            found[config["current_host"]] = pid, place
    return found


def processes(job: Job) -> Iterator[tuple[int, bytes, bytes]]:
    """Each process of a job's hosts: its words, and its variables."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if job.name.encode() in variables and int(process.name) != os.getpid():
            yield int(process.name), words, variables


def parent_of(pid: int) -> int:
    """The process that has started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executor_of(pid: int) -> int:
    """The process of Java above a rank."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = parent_of(pid)
    return pid
