"""What the programs that play rounds have in common: their command line, and folders of their own."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Play = Callable[[str, Sequence[int], int, "str | None", "frozenset[str] | None", bool], T]
"""Of a backend the rounds of these numbers, by a seed, in an image, of these faults; whether it prints every round."""


def play_as_told(
    program: str, about: str, count: int, possible: Callable[[str], frozenset[str]], can: str, play: Play[T]
) -> T:
    """Play what the command line asks for, and print what became of it.

    `count` is the number of rounds without a word of it; jobs `can` meet, or outlive, the faults that are `possible`.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.chaos.{program}", description=about.partition("\n")[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--backend", choices=["process", "docker", "slurm", "ssh"], default="process")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--fault", action="append", help="only this fault; may be given several times")
    parser.add_argument("--verbose", action="store_true", help="print every round, not only those that went wrong")
    parser.add_argument("--image", help="run containers of this image, made of one of ours, and build none")
    settings = parser.parse_args()
    known = possible(settings.backend)
    chosen = frozenset(settings.fault) if settings.fault else None
    if chosen is not None and not chosen <= known:
        parser.error(f"--fault: backend {settings.backend} can {can} {', '.join(sorted(known))}")
    print(f"backend {settings.backend}, seed {settings.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))  # the job of the round is ended
    started = time.monotonic()
    image = settings.image or image_for(settings.backend)
    with machines_for(settings.backend), own_folders():
        numbers = range(settings.first, settings.first + settings.count)
        tally = play(settings.backend, numbers, settings.seed, image, chosen, settings.verbose)
    print(f"{tally}\n{time.monotonic() - started:.0f} s")
    return tally


@contextlib.contextmanager
def own_folders() -> Iterator[Path]:
    """A home for jobs, and a place for temporary files, that nobody else uses; the names of sockets must stay short."""
    before = {name: os.environ.get(name) for name in ("ESTIMATOR_HOME", "TMPDIR")}
    with tempfile.TemporaryDirectory(prefix="chaos-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home, scratch = Path(folder, "home"), Path(folder, "t")
        scratch.mkdir()
        os.environ.update(ESTIMATOR_HOME=str(home), TMPDIR=str(scratch))
        tempfile.tempdir = None  # it is remembered from the first use on
        try:
            yield home
        finally:
            for name, value in before.items():
                _restore(name, value)
            tempfile.tempdir = None


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


@contextlib.contextmanager
def machines_for(backend: str) -> Iterator[None]:
    """The pool or the cluster that jobs of a backend run on, for as long as the block; none where they need none."""
    with contextlib.ExitStack() as stack:
        variables: Mapping[str, str] = {}
        if backend == "ssh":
            from tests.ssh import pool

            variables = stack.enter_context(pool.ENGINE.shared()).environment()
        elif backend == "slurm":
            from tests.slurm import cluster

            variables = stack.enter_context(cluster.ENGINE.shared()).environment()
        before = dict(os.environ)
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables:
                _restore(name, before.get(name))


def image_for(backend: str) -> str | None:
    """The image that jobs of a backend run in, built if it is not there; None where none is needed."""
    if backend != "docker":
        return None
    from estimator_sdk.backends.docker import engine
    from estimator_sdk.backends.docker.images import build, catalogue

    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name
