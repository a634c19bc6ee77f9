"""S19: how soon the console answers, with many jobs on the disk and a long log, and what it takes to be there."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import quote

from tests.console.folders import make_job, writer
from tests.console.server import Server, console

from ..harness import Case, Extent, Metric, Panel, Reading, Target, Way

CONSOLE, FLOOR = "the console", "reading the bytes"
HOSTS, RANKS = 8, 8
"""Of the job with the long log: so many hosts, and ranks on each."""
LINES, FEW_LINES = 10_000_000, 100_000
AT_ONCE = 50  # lines of a frame
IDLE = 10.0  # seconds
NAME, LAST = "long", "the very last line"
PANELS = (
    Panel("table", "jobs", "ms", (Target(CONSOLE, plus=0.2),)),
    Panel("a job", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("the last 200 lines of the log", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("a search for the last line", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("a search for a word that is not there", "jobs", "s"),
    Panel("memory", "jobs", "MB", (Target(CONSOLE, plus=200),)),
    Panel("CPU while nothing happens", "jobs", "%", (Target(CONSOLE, plus=1),)),
)


def make_home(home: Path, jobs: int, lines: int) -> list[Path]:
    """Fill a home; returns the logs of the long job."""
    for number in range(jobs - 1):
        make_job(home, f"job-{number:05}", created=1.6e9 + number)
    folder = make_job(home, NAME, hosts=HOSTS)
    text = b"".join(b"step %d loss: %f, and some words\n" % (number, 1 / (number + 1)) for number in range(AT_ONCE))
    for host in range(HOSTS):
        frames = writer(folder, f"algo-{host + 1}")
        for number in range(lines // HOSTS // AT_ONCE):
            frames.write(host * RANKS + number % RANKS, 1, text)
        frames.write(host * RANKS, 1, f"{LAST} of host {host}\n".encode())
        frames.close()
    return sorted(folder.path.rglob("frames"))


def timed(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began


def search(server: Server, words: str, is_first: bool) -> None:
    """Search until it is over, or for the first line that is found."""
    address, before = f"jobs/{NAME}/logs/search?text={quote(words)}", ""
    while True:
        found = server.get(f"{address}{before}")
        if found["is_over"] or (is_first and found["lines"]):
            return
        before = f"&before={found['before']}"


def cpu_of(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_console(server: Server) -> Reading:
    answers = (
        timed(partial(server.get, "jobs?text=job&sort=-seconds")),
        timed(partial(server.get, f"jobs/{NAME}")),
        timed(partial(server.get, f"jobs/{NAME}/logs")),
        timed(partial(search, server, LAST, True)),
        timed(partial(search, server, "no such word", False)),
    )
    before = cpu_of(server.process.pid)
    time.sleep(IDLE)
    return (*answers, server.memory() / 1e6, 100 * (cpu_of(server.process.pid) - before) / IDLE)


def of_reading(logs: list[Path]) -> Reading:
    def ends() -> None:
        for path in logs:
            with path.open("rb") as file:
                file.seek(-min(1 << 15, path.stat().st_size), os.SEEK_END)
                file.read()

    def every() -> None:
        for path in logs:
            with path.open("rb") as file:
                while file.read(1 << 20):
                    pass

    return (None, None, timed(ends), timed(ends), timed(every), None, None)


def cases(extent: Extent) -> Iterator[Case]:
    for jobs in extent.pick((1000, 10_000), (200,)):
        with ExitStack() as stack:
            home = Path(tempfile.mkdtemp(prefix="est-"))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            logs = make_home(home, jobs, FEW_LINES if extent.quick else LINES)
            server = stack.enter_context(console(home))
            ways = (
                Way(FLOOR, "floor", partial(of_reading, logs)),
                Way(CONSOLE, "ours", partial(of_console, server)),
            )
            yield Case(PANELS, jobs, ways)


METRIC = Metric(
    "S19",
    "The console",
    "Answers of the API over HTTP, as the page asks for them: the table filtered and sorted, and a job of "
    f"{HOSTS * RANKS} ranks with {LINES:,} lines of log. The console keeps no index of logs, so each search is a cold "
    "one but for what the system has in memory. The floor reads the bytes that are asked for.",
    cases,
)
