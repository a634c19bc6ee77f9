"""Jobs that are timed, and the worlds that people make by hand on one host."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from estimator_container.contract.event_decoding import AnyEvent, decode
from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.worlds.mpi import programs
from estimator_container.worlds.mpi.world import MpiWorld

from estimator_sdk import Estimator, Job
from estimator_sdk.backends.docker.images import catalogue
from estimator_sdk.backends.supervised.job import wait_until_gone

from . import peers
from .harness import SCRIPTS

HELLO = SCRIPTS / "hello.py"
PATIENCE = 300.0  # seconds for one run of anything
ROOT_FLAGS = ["--allow-run-as-root"] if os.geteuid() == 0 else []
_TOLD = re.compile(r"(main|world|end) (\d+\.\d+)")


@contextlib.contextmanager
def own_home() -> Iterator[Path]:
    """A home for jobs that nobody else has; the names of sockets must stay short."""
    before = os.environ.get("ESTIMATOR_HOME")
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["ESTIMATOR_HOME"] = str(Path(folder, "home"))
        try:
            yield Path(folder)
        finally:
            os.environ.pop("ESTIMATOR_HOME")
            if before is not None:
                os.environ["ESTIMATOR_HOME"] = before


def estimator(
    script: Path, hosts: int, image: str | None = None, processes: int = 1, **hyperparameters: object
) -> Estimator:
    """Hosts that are processes, or with an image containers."""
    return Estimator(
        entry_point=script,
        image_uri=image,
        backend="docker" if image else "process",
        instance_count=hosts,
        distribution={"mpi": {"enabled": True, "processes_per_host": processes}},
        hyperparameters=hyperparameters,
        base_job_name="bench",
    )


@dataclass(frozen=True)
class Moments:
    """When things happened, in seconds since 1970."""

    called: float
    in_world: float
    """The last rank's MPI_Init has returned."""
    ended: float
    """The last rank is at the end of its script."""
    returned: float
    gone: float
    """Nothing is left of the job but its files."""


def moments(called: float, returned: float, text: str, ranks: int, gone: float | None = None) -> Moments:
    """From what the ranks of hello.py said. Raises RuntimeError when one of them is missing."""
    told: dict[str, list[float]] = {}
    for kind, at in _TOLD.findall(text):
        told.setdefault(kind, []).append(float(at))
    if not len(told.get("world", ())) == len(told.get("end", ())) == ranks:
        raise RuntimeError(f"not all of {ranks} ranks said when they came and went:\n{text[-2000:]}")
    return Moments(called, max(told["world"]), max(told["end"]), returned, gone or returned)


class Fitted(NamedTuple):
    """A job that has run, and when `fit()` was called and returned, and nothing was left of it but its files."""

    job: Job
    called: float
    returned: float
    gone: float


def fit(chosen: Estimator, inputs: Mapping[str, str] | None = None) -> Fitted:
    """Run a job; nothing is shown."""
    with contextlib.redirect_stdout(io.StringIO()):
        called = time.time()
        job = chosen.fit(inputs, logs="none")
        returned = time.time()
    wait_until_gone()  # or it would be done while the next way is timed
    return Fitted(job, called, returned, time.time())


def hello(chosen: Estimator, ranks: int) -> Moments:
    """`fit()` of hello.py."""
    done = fit(chosen)
    text = b"".join(line.data for line in done.job.logs(stream="stdout")).decode()
    return moments(done.called, done.returned, text, ranks, done.gone)


def sagemaker_local(hosts: int) -> Moments:
    """The same by the SageMaker SDK's local mode, in a process of its own that has loaded it before."""
    script = SCRIPTS / "sagemaker_local.py"
    argv = [str(peers.SAGEMAKER), str(script), peers.TOOLKIT_IMAGE, str(HELLO), str(hosts)]
    env = {
        **os.environ,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }
    env.pop("PYTHONPATH", None)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)
    if done.returncode != 0:
        raise RuntimeError(
            f"SageMaker's local mode ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
        )
    times = json.loads(done.stdout.splitlines()[-1])
    return moments(times["called"], times["returned"], done.stdout + done.stderr, hosts)


@dataclass(frozen=True)
class Event:
    """What a host's toolkit wrote down."""

    time: float
    """Seconds since 1970."""
    host: str
    what: AnyEvent


def events(job: Job) -> list[Event]:
    """Of all hosts, in the order of time."""
    found = []
    for path in job.log_files:
        for frame in FrameParser().feed(path.read_bytes()):
            what = decode(frame.data) if frame.stream == EVENT else None
            if what is not None:
                found.append(Event(frame.time_ns / 1e9, path.parents[2].name, what))
    return sorted(found, key=lambda event: event.time)


def bare_mpirun(ranks: int, flags: Sequence[str] = ()) -> list[str]:
    """What users write by hand on one machine, without the program."""
    return [programs.find("mpirun"), *ROOT_FLAGS, "--oversubscribe", *flags, "-np", str(ranks)]


LEFT_ALONE = tuple(f"{name}={value}" for name, value in MpiWorld((), 1).defaults("lo", with_fabric=False).items())
"""The variables, for `env`, that a job's MPI has unless the user says otherwise."""


def quickest_mpirun(ranks: int, *flags: str) -> list[str]:
    """The same with what starts a world on one host fastest: only the parts that it needs, and UCX left alone."""
    few = ("-mca", "pml", "ob1", "-mca", "btl", "self,vader", "-mca", "oob_tcp_if_include", "lo")
    few += ("-mca", "mpi_yield_when_idle", "1")
    return ["/usr/bin/env", *LEFT_ALONE, *bare_mpirun(ranks, (*few, *flags))]


def said(argv: Sequence[str], limit: float = PATIENCE) -> str:
    """What a command that ends well writes to its standard output. Raises TimeoutError, and RuntimeError."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            out, words = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            running.terminate()  # mpirun then ends its ranks, which it could not if it were killed
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=10)
            running.kill()
            raise TimeoutError(f"no end after {limit:g} s: {' '.join(argv)}") from None
    if running.returncode != 0:
        raise RuntimeError(f"{argv[0]} ended with {running.returncode}: {(out + words)[-2000:]}")
    return out


@contextlib.contextmanager
def ended_after(limit: float, running: subprocess.Popen) -> Iterator[None]:
    """End a program that goes on for longer; who reads from it then finds the end of its output."""
    timer = threading.Timer(limit, running.terminate)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def by_hand(argv: Sequence[str], ranks: int, script: Path = HELLO) -> Moments:
    """A command that starts the ranks of hello.py."""
    called = time.time()
    out = said([*argv, sys.executable, str(script)])
    return moments(called, time.time(), out, ranks)


def our_image(framework: catalogue.Framework = "mpi") -> str:
    """The name of a framework's newest image, or of the one without any, built if it is not there."""
    from estimator_sdk.backends.docker import engine
    from estimator_sdk.backends.docker.images import build

    name = catalogue.newest(framework).name
    build.ensure(engine.connect(), name, sys.stderr)
    return name
