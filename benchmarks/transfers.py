"""Ways to bring a folder to an object store and back, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from . import harness, peers
from .clients import BUCKET, CONNECTIONS, Ready, our_down, our_up, raw_delete, raw_down, raw_up, raw_up_and_two_trips
from .harness import FEW, SCRIPTS, Extent, Way

MB = 1_000_000
SMALL = 64 << 10  # bytes of each of many files
SLOW = 64
"""MB of a file from which on a target is a matter of a few per cent. A reading of so many MB is short enough to fall
into one or the other of a server's moods, of which one is twice as quick."""
MANY = 1000
"""Files of 64 KiB from which on all others are far behind."""
RAW, OURS = "raw client", "ours"


class Cost(NamedTuple):
    """What a transfer took."""

    seconds: float
    cpu: float
    """Seconds of the client's CPUs; the server's are not known where it is none of ours."""


def used(*whom: int) -> float:
    """Seconds of the CPUs until now."""
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, whom))


def forked(ready: Ready, folder: Path, prefix: str) -> Cost:
    """A transfer in a process of its own, without what makes it ready."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run = ready(folder, prefix)
            whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            begun, before = time.perf_counter(), used(*whom)
            run()
            os.write(write, struct.pack("dd", time.perf_counter() - begun, used(*whom) - before))
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        taken = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"the transfer of {folder} failed: see above")
    return Cost(*struct.unpack("dd", taken))


def command(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Cost:
    before = used(resource.RUSAGE_CHILDREN)
    seconds = harness.command(argv, env)
    return Cost(seconds, used(resource.RUSAGE_CHILDREN) - before)


def s5cmd(source: str, target: str) -> Cost:
    program, endpoint = str(peers.PEERS_FOLDER / "s5cmd"), os.environ["AWS_ENDPOINT_URL_S3"]
    return command([program, "--endpoint-url", endpoint, "--log", "error", "cp", source, target])


def rclone(source: str, target: str) -> Cost:
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "ENDPOINT": os.environ["AWS_ENDPOINT_URL_S3"]}
    remote |= {"REGION": "us-east-1", "NO_CHECK_BUCKET": "true"}
    env = {**os.environ, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in remote.items()}}
    env["RCLONE_CONFIG"] = os.devnull
    env.pop("AWS_CA_BUNDLE", None)  # its transport takes none, and ends
    return command(["rclone", "copy", f"--transfers={CONNECTIONS}", source, target], env)


def crt(direction: str, folder: Path, prefix: str) -> Cost:
    """The transfer alone: neither the start of the process nor the imports, which take longer than a small one."""
    argv = [str(peers.PEERS_FOLDER / "python"), str(SCRIPTS / "boto3_crt.py"), direction, str(folder), BUCKET, prefix]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"boto3 with CRT ended with {done.returncode}: {done.stderr[-2000:]}")
    return Cost(*map(float, done.stdout.split()))


def up(folder: Path, prefixes: dict[str, str]) -> tuple[Way, ...]:
    """Ways to bring a folder there, for panels of seconds and of CPUs.

    `prefixes` gets the place of each; what it brought there before is deleted.
    """

    def to_new_place(name: str, move: Callable[[str], Cost]) -> Cost:
        prefix = uuid.uuid4().hex
        cost = move(prefix)
        if name in prefixes:
            forked(raw_delete, folder, prefixes[name])
        prefixes[name] = prefix
        return cost

    place = f"{BUCKET}/"
    moves: Mapping[str, Callable[[str], Cost]] = {
        RAW: lambda prefix: forked(raw_up, folder, prefix),
        "raw client, two requests more": lambda prefix: forked(raw_up_and_two_trips, folder, prefix),
        "s5cmd": lambda prefix: s5cmd(f"{folder}/", f"s3://{place}{prefix}/"),
        "rclone": lambda prefix: rclone(str(folder), f"store:{place}{prefix}"),
        "boto3-crt": lambda prefix: crt("up", folder, prefix),
        OURS: lambda prefix: forked(our_up, folder, prefix),
    }
    return tuple(as_way(name, partial(to_new_place, name, move), size_of(folder)) for name, move in moves.items())


def runs(extent: Extent, size: int) -> int:
    """Of a file of so many MB; those from 64 MB on tell by a few per cent, and readings of them spread by more."""
    if size < SLOW:
        return extent.runs
    if size == SLOW:
        return 4 * extent.runs
    return 3 * extent.runs if extent.large else extent.many


def few_of_others(ways: tuple[Way, ...], count: int) -> tuple[Way, ...]:
    """Those of so many files; where ours is far ahead of all, more runs of the others would tell nothing."""
    if count < MANY:
        return ways
    return tuple(way if way.name == OURS else replace(way, at_most=FEW) for way in ways)


def forget(prefixes: dict[str, str]) -> None:
    """Delete what the ways have brought there."""
    while prefixes:
        forked(raw_delete, Path(), prefixes.popitem()[1])


def down(scratch: Path, prefixes: Mapping[str, str], size: int) -> tuple[Way, ...]:
    """Ways to bring back what each has brought there, so many bytes, for the same panels."""

    def to_new_folder(move: Callable[[Path], Cost]) -> Cost:
        target = scratch / "down"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        return move(target)

    moves: Mapping[str, Callable[[Path], Cost]] = {
        RAW: lambda target: forked(raw_down, target, prefixes[RAW]),
        "s5cmd": lambda target: s5cmd(f"s3://{BUCKET}/{prefixes['s5cmd']}/*", f"{target}/"),
        "rclone": lambda target: rclone(f"store:{BUCKET}/{prefixes['rclone']}", str(target)),
        "boto3-crt": lambda target: crt("down", target, prefixes["boto3-crt"]),
        OURS: lambda target: forked(our_down, target, prefixes[OURS]),
    }
    return tuple(as_way(name, partial(to_new_folder, move), size) for name, move in moves.items())


def as_way(name: str, move: Callable[[], Cost], size: int) -> Way:
    def run() -> tuple[float, float]:
        cost = move()
        return cost.seconds, cost.cpu / (size / (1 << 30))

    if name == OURS:
        return Way(name, "ours", run)
    if name not in peers.PEERS:
        return Way(name, "floor", run)
    return Way(name, "peer", run, peer=name, at_most=None if name == "s5cmd" else FEW)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@contextlib.contextmanager
def server(folder: Path) -> Iterator[None]:
    """LocalStack on a free port, which may write to the folder, unless the environment names a server."""
    if "AWS_ENDPOINT_URL_S3" in os.environ:
        yield
        return
    from tests.stores.servers import localstack

    before = dict(os.environ)
    with localstack(folder) as started:
        os.environ.update(started.environment(), AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1")
        started.client().create_bucket(Bucket=BUCKET)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def one_file(folder: Path, size: int) -> Path:
    """A folder with one file of so many MB."""
    folder.mkdir()
    (folder / "weights").write_bytes(os.urandom(size * MB))
    return folder


def many_files(folder: Path, count: int) -> Path:
    """A folder with so many files of 64 KiB."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05d}").write_bytes(os.urandom(SMALL))
    return folder
