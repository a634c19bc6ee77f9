"""S19: how soon the console answers, with many jobs on the disk and a long log, and what it takes to be there."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from estimator_container.contract.names import Layout
from estimator_container.telemetry.logged import ValueLog

from estimator_sdk.values.home import JobFolder
from tests.console.folders import make_job, writer
from tests.console.server import PATIENCE, Server, console

from .. import consoles
from ..consoles import MlflowQuestions, Running, TensorboardQuestions
from ..harness import FEW, Case, Extent, Metric, Panel, Reading, Target, Way

CONSOLE, FLOOR, MLFLOW, TENSORBOARD = "the console", "reading the bytes", "MLflow's server", "TensorBoard"
HOSTS, RANKS = 8, 8
"""Of the job with the long log: so many hosts, and ranks on each."""
JOBS, FEW_JOBS = 10_000, 200
LINES, FEW_LINES = 10_000_000, 100_000
POINTS, FEW_POINTS = 1_000_000, 20_000
"""Of the metrics of that job, over all ranks."""
AT_ONCE = 50  # lines of a frame
SETTLED, IDLE = 4.0, 10.0
"""Seconds until what was asked before is done with, and in which nothing happens: its CPU is counted in 10 ms."""
TABLES = 20  # questions for the table, of which the 95th percentile is told
CHANGED = 10  # jobs of an update
NAME, LAST = "long", "the very last line"
PANELS = (
    Panel("from the start until every job is in the table", "jobs", "s"),
    Panel("the table, 95th percentile", "jobs", "ms", (Target(CONSOLE, plus=0.2),)),
    Panel("a job", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("the last 200 lines of the log", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("a search for the last line", "jobs", "ms", (Target(CONSOLE, plus=0.3),)),
    Panel("a search for a word that is not there", "jobs", "s"),
    Panel("the curves of all ranks, opened first", "jobs", "s"),
    Panel("the curves of all ranks again", "jobs", "ms"),
    Panel("from a line in the log to the page's", "jobs", "ms", (Target(CONSOLE, plus=1.0),)),
    Panel("an update, for each job that changed", "jobs", "B", (Target(CONSOLE, plus=500),)),
    Panel("memory", "jobs", "MB", (Target(CONSOLE, plus=200),)),
    Panel("CPU while nothing happens", "jobs", "%", (Target(CONSOLE, plus=1),)),
)


def make_long_job(home: Path, lines: int, points: int) -> list[Path]:
    """The job with so many lines and values in all; returns its logs."""
    folder = make_job(home, NAME, hosts=HOSTS)
    text = b"".join(b"step %d loss: %f, and some words\n" % (number, 1 / (number + 1)) for number in range(AT_ONCE))
    for host in range(HOSTS):
        frames = writer(folder, f"algo-{host + 1}")
        for number in range(lines // HOSTS // AT_ONCE):
            frames.write(host * RANKS + number % RANKS, 1, text)
        frames.write(host * RANKS, 1, f"{LAST} of host {host}\n".encode())
        frames.close()
        for rank in range(host * RANKS, (host + 1) * RANKS):
            logged = ValueLog(Layout(str(folder.host(f"algo-{host + 1}"))).logged_metrics, str(rank))
            for step in range(points // HOSTS // RANKS):
                logged.add(step, {"loss": 1 / (step + 1)})
    os.sync()  # what is not on the disk cannot be forgotten either
    return sorted(folder.path.rglob("frames"))


def make_jobs(home: Path, count: int) -> None:
    """Others, many at a time: each waits for the disk to have its record."""
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda number: make_job(home, f"job-{number:05}", created=1.6e9 + number), range(count)))


def forget(logs: list[Path]) -> None:
    """Have the system read the logs from the disk again."""
    for path in logs:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began


def percentile(ask: Callable[[int], object]) -> float:
    """Seconds within which 95 of 100 answers come."""
    return statistics.quantiles([timed(partial(ask, number)) for number in range(TABLES)], n=20)[-1]


def search(server: Server, words: str, is_first: bool) -> None:
    """Search until it is over, or for the first line that is found."""
    address, before = f"jobs/{NAME}/logs/search?text={quote(words)}", ""
    while True:
        found = server.get(f"{address}{before}")
        if found["is_over"] or (is_first and found["lines"]):
            return
        before = f"&before={found['before']}"


def curves(server: Server) -> None:
    while not server.get(f"jobs/{NAME}/curves")["is_complete"]:
        pass


@contextmanager
def listening(server: Server, query: str = "") -> Iterator[socket.socket]:
    """As a page that hears of changes, from now on."""
    head = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as page:
        page.sendall(f"GET /api/events{query} HTTP/1.1\r\n{head}".encode())
        said = b""
        while b"event: hello" not in said:
            said += page.recv(1 << 16)
        time.sleep(1.0)  # in which the console has begun to watch
        yield page


def follow(server: Server, home: Path) -> float:
    """From the writing of a line to the answer that has it."""
    frames = writer(JobFolder(home / "jobs" / NAME))
    with listening(server, f"?job={NAME}") as page:
        began = time.perf_counter()
        frames.write(0, 1, f"written at {began}\n".encode())
        frames.close()
        said = b""
        while b"event: log" not in said:
            said += page.recv(1 << 16)
        (last,) = server.get(f"jobs/{NAME}/logs?limit=1&rank=0&host=algo-1")["lines"]
        assert last["text"] == f"written at {began}"
        return time.perf_counter() - began


def update(server: Server, home: Path) -> float:
    """Bytes that a page is sent for each of some jobs that appear."""
    names = [f"new-{number}" for number in range(CHANGED)]
    with listening(server) as page:
        said = b""
        folders = [make_job(home, name, created=1.6e9).path for name in names]
        while not all(f'"{name}"'.encode() in said for name in names):
            said += page.recv(1 << 16)
        for folder in folders:
            shutil.rmtree(folder)
    return len(said) / CHANGED


def idle(pid: int) -> tuple[float, float]:
    """MB of memory, and the share of a CPU that is used while nothing happens, in per cent."""
    time.sleep(SETTLED)
    before = consoles.cpu_of(pid)
    time.sleep(IDLE)
    return consoles.memory_of(pid), 100 * (consoles.cpu_of(pid) - before) / IDLE


def of_console(home: Path, logs: list[Path]) -> Reading:
    began = time.perf_counter()
    with console(home) as server:
        server.get("jobs")
        start = time.perf_counter() - began
        sorts = ("-seconds", "name", "-created", "status")
        table = percentile(lambda number: server.get(f"jobs?text=job-0{number % 10}&sort={sorts[number % 4]}"))
        job = timed(partial(server.get, f"jobs/{NAME}"))
        found = []
        for ask in (
            partial(server.get, f"jobs/{NAME}/logs"),
            partial(search, server, LAST, True),
            partial(search, server, "no such word", False),
        ):
            forget(logs)
            found.append(timed(ask))
        first = timed(partial(curves, server))
        again = timed(partial(curves, server))
        return (
            start,
            table,
            job,
            *found,
            first,
            again,
            follow(server, home),
            update(server, home),
            *idle(server.process.pid),
        )


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

    found = []
    for ask in (ends, ends, every):
        forget(logs)
        found.append(timed(ask))
    return (None, None, None, *found, *[None] * 6)


def of_mlflow(folder: Path) -> Reading:
    argv, port = consoles.mlflow(folder)
    began = time.perf_counter()
    with consoles.serving(argv, port, lambda server: bool(MlflowQuestions(server).table())) as server:
        start = time.perf_counter() - began
        asked = MlflowQuestions(server)
        run = asked.table("job-long")[0]["info"]["run_id"]
        table = percentile(lambda number: asked.table(f"job-0{number % 10}"))
        job = timed(partial(asked.job, run))
        first, again = (timed(partial(asked.curves, run, HOSTS * RANKS)) for _ in range(2))
        return (start, table, job, None, None, None, first, again, None, None, *idle(server.process.pid))


def of_tensorboard(folder: Path, jobs: int) -> Reading:
    def is_up(server: Running) -> bool:
        return len(TensorboardQuestions(server).table()) == jobs - 1 + HOSTS * RANKS

    argv, port = consoles.tensorboard(folder)
    began = time.perf_counter()
    with consoles.serving(argv, port, is_up) as server:
        start = time.perf_counter() - began
        asked = TensorboardQuestions(server)
        table = percentile(lambda number: asked.table())
        first, again = (timed(partial(asked.curves, HOSTS * RANKS)) for _ in range(2))
        return (start, table, None, None, None, None, first, again, None, None, *idle(server.process.pid))


def cases(extent: Extent) -> Iterator[Case]:
    lines, points = (FEW_LINES, FEW_POINTS) if extent.quick else (LINES, POINTS)
    peers = [peer for peer in ("mlflow", "tensorboard") if peer not in extent.left_out]
    (jobs,) = extent.pick((JOBS,), (FEW_JOBS,))
    with ExitStack() as stack:
        home, others = emptied(stack), emptied(stack)
        logs = make_long_job(home, lines, points)
        make_jobs(home, jobs - 1)
        for peer in peers:
            consoles.fill(peer, others, jobs, HOSTS * RANKS, points // HOSTS // RANKS)
        ways = (
            Way(FLOOR, "floor", partial(of_reading, logs), at_most=FEW),
            Way(CONSOLE, "ours", partial(of_console, home, logs), at_most=FEW),
            Way(MLFLOW, "peer", partial(of_mlflow, others), peer="mlflow", at_most=1),
            Way(TENSORBOARD, "peer", partial(of_tensorboard, others, jobs), peer="tensorboard", at_most=1),
        )
        yield Case(PANELS, jobs, ways)


def emptied(stack: ExitStack) -> Path:
    """A folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="est-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


METRIC = Metric(
    "S19",
    "The console",
    "Answers of the API over HTTP, as the page asks for them: the table filtered and sorted, and a job of "
    f"{HOSTS * RANKS} ranks with {LINES:,} lines of log and {POINTS:,} values of a metric. The console is started for "
    "each reading, and keeps no index of logs: nothing is to be made or repaired before a search, and the system has "
    "forgotten the logs before each. The floor reads the bytes that are asked for. MLflow has the jobs as runs in "
    "SQLite, and TensorBoard as folders of events, of which one has the same values by rank; neither has logs.",
    cases,
    peers=("mlflow", "tensorboard"),
)
