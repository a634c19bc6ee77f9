"""S7: how fast the lines of all ranks reach the client, how many are damaged, and how late they come."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from estimator_container.contract.names import Layout

from .. import jobs, peers
from ..harness import FEW, SCRIPTS, Case, Extent, Metric, Panel, Target, Way

WRITER, TICKER = SCRIPTS / "writer.py", SCRIPTS / "ticker.py"
TOOLKIT = "sagemaker-training 5.1.4"
BUFFERED = Panel(
    "lines of buffered output", "ranks", "lines/s", (Target("fit()", TOOLKIT, 10.0),), higher_is_better=True
)
DAMAGED = Panel("damaged lines of buffered output", "ranks", "lines", (Target("fit()"),))
AT_ONCE = Panel(
    "lines written one by one", "ranks", "lines/s", (Target("fit()", TOOLKIT, 10.0),), higher_is_better=True
)
DAMAGED_AT_ONCE = Panel("damaged lines written one by one", "ranks", "lines", (Target("fit()"),))
LATE = Panel("from the writing of a line to the client, 99th percentile", "ranks", "ms", (Target("fit()", plus=0.005),))
CHUNK = 1 << 20
QUIET = 5.0  # seconds
MANY, MANY_RUNS = 100_000_000, 10
"""Lines in which not one may be damaged, and the runs that they come in, for they are held in memory."""
_BEGIN = re.compile(rb"begin (\d+\.\d+)")
_TICK = re.compile(rb"tick (\d+\.\d+)")


@lru_cache(maxsize=1)
def all_lines(ranks: int, lines: int, tagged: bool) -> frozenset[bytes]:
    """The lines of all ranks, as `scripts/writer.py` makes them."""
    tags = {rank: b"[1,%d]<stdout>:" % rank if tagged else b"" for rank in range(ranks)}
    filler = b"x" * 64
    return frozenset(
        b"%b%d %d %b %d" % (tag, rank, number, filler, number) for rank, tag in tags.items() for number in range(lines)
    )


@dataclass
class Received:
    """What came to a client, and when."""

    chunks: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def take(self, data: bytes) -> None:
        self.chunks.append(data)
        self.times.append(time.time())

    def rate_and_damage(self, ranks: int, lines: int) -> tuple[float, float]:
        """Lines a second from the first rank's beginning to the last line that is whole, and how many are not."""
        text = b"".join(self.chunks)
        whole = all_lines(ranks, lines, tagged=b"]<stdout>:" in text).intersection(text.splitlines())
        begun = min(float(at) for at in _BEGIN.findall(text))
        last = max(at for chunk, at in zip(self.chunks, self.times, strict=True) if b"xxxx" in chunk)
        return ranks * lines / (last - begun), float(ranks * lines - len(whole))

    def lateness(self) -> float:
        """The 99th percentile of seconds from the writing of a line to its coming."""
        pairs = zip(self.chunks, self.times, strict=True)
        late = sorted(at - float(written) for chunk, at in pairs for written in _TICK.findall(chunk))
        return late[len(late) * 99 // 100]


class Shown(io.TextIOBase):
    """A text stream that notes what is written to it, and when."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._times: list[float] = []

    def write(self, text: str) -> int:
        self._texts.append(text)
        self._times.append(time.time())
        return len(text)

    def received(self) -> Received:
        return Received([text.encode() for text in self._texts], self._times)


def arguments(script: Path, **options: int) -> list[str]:
    return [str(script), *(word for name, value in options.items() for word in (f"--{name}", str(value)))]


def through_pipe(argv: Sequence[str], when_quiet: Callable[[], object] | None = None) -> Received:
    """What a command writes to its standard output, until its end.

    With `when_quiet`, which is to end the command, until it has been silent for some seconds after its ranks' begin.
    """
    received = Received()
    with (
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
        jobs.ended_after(jobs.PATIENCE, running),
    ):
        assert running.stdout is not None and running.stderr is not None
        pipe, begun, told_to_end = running.stdout.fileno(), False, False
        while True:
            if when_quiet and begun and not told_to_end and not select.select([pipe], [], [], QUIET)[0]:
                when_quiet()
                told_to_end = True
            if not (data := os.read(pipe, CHUNK)):
                break
            received.take(data)
            begun = begun or _BEGIN.search(data) is not None
        words = running.stderr.read()
    if running.returncode != 0 and not told_to_end:
        raise RuntimeError(f"{argv[0]} ended with {running.returncode}: {words.decode(errors='replace')[-1000:]}")
    return received


def mpirun(ranks: int, script: Path, **options: int) -> Received:
    return through_pipe([*jobs.quickest_mpirun(ranks, "--tag-output"), sys.executable, *arguments(script, **options)])


def ours(ranks: int, script: Path, **options: int) -> Received:
    """Two hosts with half of the ranks each, and what `fit()` shows."""
    shown = Shown()
    with contextlib.redirect_stdout(shown):
        jobs.estimator(script, 2, processes=ranks // 2, **options).fit()
    return shown.received()


def toolkit(ranks: int, script: Path, **options: int) -> Received:
    """One container of SageMaker's toolkit, whose output comes through the engine; the 30 s that it then sleeps are cut
    short."""
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(folder)
        Path(layout.config).mkdir(parents=True)
        Path(layout.code).mkdir()
        Path(layout.code, script.name).write_bytes(script.read_bytes())
        hyperparameters = {
            "sagemaker_program": script.name,
            "sagemaker_submit_directory": "/opt/ml/code",
            "sagemaker_mpi_enabled": "true",
            "sagemaker_mpi_num_of_processes_per_host": str(ranks),
            **{name: str(value) for name, value in options.items()},
        }
        hosts = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "eth0"}
        groups = {"current_instance_type": "local", "current_group_name": "group"}
        group = {"instance_group_name": "group", "instance_type": "local", "hosts": ["algo-1"]}
        Path(layout.hyperparameters).write_text(json.dumps(hyperparameters))
        Path(layout.resource_config).write_text(json.dumps({**hosts, **groups, "instance_groups": [group]}))
        Path(layout.input_data_config).write_text("{}")
        name = f"bench-{uuid.uuid4().hex}"
        run = ["docker", "run", "--rm", "--name", name, "--hostname", "algo-1", "-v", f"{folder}:/opt/ml"]
        kill = partial(subprocess.run, ["docker", "kill", name], check=True, stdout=subprocess.DEVNULL)
        return through_pipe([*run, peers.TOOLKIT_IMAGE, "train"], when_quiet=kill)


def cats(ranks: int, script: Path, **options: int) -> Received:
    """As many processes, each through a pipe and a `cat` to a file."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        writers, readers = [], []
        for rank in range(ranks):
            env = {**os.environ, "WRITER": str(rank)}
            argv = [sys.executable, *arguments(script, **options)]
            writer = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
            file = stack.enter_context(Path(folder, str(rank)).open("wb"))
            readers.append(subprocess.Popen(["cat"], stdin=writer.stdout, stdout=file))
            assert writer.stdout is not None and writer.stdin is not None
            writer.stdout.close()
            writers.append(writer)
        time.sleep(0.1 + 0.05 * ranks)  # all are at the gate; who is not begins a little later
        for writer in writers:
            writer.stdin.close()
        for each in (*writers, *readers):
            each.wait()
        received = Received()
        ended = time.time()
        for path in sorted(Path(folder).iterdir()):
            received.chunks.append(path.read_bytes())
            received.times.append(ended)
        return received


def one_pipe(lines: int) -> Received:
    return through_pipe([sys.executable, *arguments(TICKER, lines=lines)])


def rated(way: Callable[..., Received], ranks: int, lines: int, each: int) -> tuple[float, float]:
    return way(ranks, WRITER, lines=lines, each=each).rate_and_damage(ranks, lines)


def cases(extent: Extent) -> Iterator[Case]:
    with jobs.own_home():
        if extent.large:
            way = Way("fit()", "ours", partial(rated, ours, 16, MANY // MANY_RUNS // 16, 0))
            yield Case((BUFFERED, DAMAGED), 16, (way,), MANY_RUNS)
            return
        for panels, each, total in (
            ((BUFFERED, DAMAGED), 0, 100_000 if extent.quick else 2_000_000),
            ((AT_ONCE, DAMAGED_AT_ONCE), 1, 20_000 if extent.quick else 1_000_000),
        ):
            for ranks in extent.pick((2, 16, 64) if each == 0 else (2, 16), (4,)):
                share = total // ranks
                theirs = partial(rated, toolkit, ranks, share, each)
                ways = [
                    Way("cat of every pipe", "floor", partial(rated, cats, ranks, share, each)),
                    Way("mpirun --tag-output", "peer", partial(rated, mpirun, ranks, share, each), at_most=FEW),
                    Way("fit()", "ours", partial(rated, ours, ranks, share, each)),
                ]
                if each == 0 or not extent.quick:
                    ways.append(Way(TOOLKIT, "peer", theirs, peer="sagemaker-training", at_most=FEW if each else 1))
                yield Case(panels, ranks, tuple(ways))
                all_lines.cache_clear()
        lines = 100 if extent.quick else 200
        for ranks in extent.pick((2, 8), (2,)):
            yield Case(
                (LATE,),
                ranks,
                (
                    Way("a pipe", "floor", lambda: one_pipe(lines).lateness()),
                    Way("mpirun --tag-output", "peer", lambda n=ranks: mpirun(n, TICKER, lines=lines).lateness()),
                    Way("fit()", "ours", lambda n=ranks: ours(n, TICKER, lines=lines).lateness()),
                ),
            )


METRIC = Metric(
    "S7",
    "The log plane",
    "All ranks begin at the same moment to write numbered lines of about 80 bytes, through a buffer as Python's, or "
    "each at once; the lines are made before, for their way is timed and not their making. Lines a second are "
    "counted from that moment until the client has the last one; damaged are those that do not come whole. Ours are "
    "what `fit()` shows "
    "of a job on 2 hosts. The floor is a `cat` for every rank that copies its pipe to a file. The peers are read from "
    "a pipe: mpirun on one "
    "host, and `sagemaker-training` in one container, which is ended when it has been silent for 5 s, as it sleeps for "
    "30 s at its end; both are run less often. For the "
    "last panel each rank writes "
    "a line a hundred times a second.",
    cases,
    peers=("sagemaker-training",),
)
