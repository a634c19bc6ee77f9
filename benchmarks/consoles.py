"""Other consoles with the same jobs and metrics: MLflow's server and TensorBoard, each from its own environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.stores.servers import free_port

from .harness import SCRIPTS
from .peers import CONSOLES_FOLDER

PATIENCE = 240.0  # seconds for one that loads ten thousand runs
SHOWN = 320  # points that MLflow's page asks for of a curve
EXPERIMENT = "jobs"


@dataclass(frozen=True)
class Running:
    """A server that has come up."""

    process: subprocess.Popen[bytes]
    address: str

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        return self.ask(urllib.request.Request(f"{self.address}{path}?{urlencode(query, doseq=True)}"))

    def post(self, path: str, body: bytes, kind: str) -> Any:  # noqa: ANN401
        return self.ask(urllib.request.Request(f"{self.address}{path}", body, {"Content-Type": kind}))

    def ask(self, request: urllib.request.Request) -> Any:  # noqa: ANN401
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


def fill(what: str, folder: Path, jobs: int, ranks: int, points: int) -> None:
    """Give a peer so many runs, of which one has so many points of each of its ranks."""
    script = SCRIPTS / "fill_console.py"
    words = [CONSOLES_FOLDER / "python", script, what, folder, jobs, ranks, points]
    subprocess.run([str(word) for word in words], check=True, env=_environment())


@contextmanager
def serving(argv: list[str], port: int, is_up: Callable[[Running], bool]) -> Iterator[Running]:
    """A server until the end of the block, with all of its processes."""
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=_environment()
    )
    running = Running(process, f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(running, is_up):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{argv[0]} does not come up: {process.poll()}")
            time.sleep(0.05)
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def mlflow(folder: Path) -> tuple[list[str], int]:
    """The command of its server, and the port."""
    port = free_port()
    words = ["server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--host", "127.0.0.1"]
    return [str(CONSOLES_FOLDER / "mlflow"), *words, "--port", str(port), "--workers", "1"], port


def tensorboard(folder: Path) -> tuple[list[str], int]:
    port = free_port()
    return [
        str(CONSOLES_FOLDER / "tensorboard"),
        "--logdir",
        str(folder / "events"),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ], port


class MlflowQuestions:
    """What its page asks."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._experiment = ""

    def table(self, text: str = "job") -> list[Any]:
        if not self._experiment:
            name = "/api/2.0/mlflow/experiments/get-by-name"
            self._experiment = self._server.get(name, experiment_name=EXPERIMENT)["experiment"]["experiment_id"]
        asked = {
            "experiment_ids": [self._experiment],
            "filter": f"attributes.run_name LIKE '%{text}%'",
            "order_by": ["attributes.start_time DESC"],
            "max_results": 50,
        }
        body = json.dumps(asked).encode()
        found: list[Any] = self._server.post("/api/2.0/mlflow/runs/search", body, "application/json").get("runs", [])
        return found

    def job(self, run: str) -> None:
        self._server.get("/api/2.0/mlflow/runs/get", run_id=run)

    def curves(self, run: str, ranks: int) -> None:
        path = "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
        for rank in range(ranks):
            found = self._server.get(path, run_ids=run, metric_key=f"rank_{rank}/loss", max_results=SHOWN)
            assert found["metrics"]


class TensorboardQuestions:
    """What its page asks."""

    def __init__(self, server: Running) -> None:
        self._server = server

    def table(self) -> list[str]:
        found: list[str] = self._server.get("/data/runs")
        return found

    def curves(self, runs: int) -> None:
        body = urlencode({"requests": json.dumps([{"plugin": "scalars", "tag": "rank/loss"}])}).encode()
        path = "/data/plugin/timeseries/timeSeries"
        (found,) = self._server.post(path, body, "application/x-www-form-urlencoded")
        assert len(found["runToSeries"]) == runs, len(found["runToSeries"])


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for process in found:
        with suppress(OSError):
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def memory_of(pid: int) -> float:
    """MB of anonymous memory of a process and all below it."""
    total = 0
    for each in tree(pid):
        with suppress(OSError):
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
    return total * 1024 / 1e6


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and all below it."""
    ticks = 0
    for each in tree(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _answers(running: Running, is_up: Callable[[Running], bool]) -> bool:
    try:
        return is_up(running)
    except (OSError, ValueError, LookupError, urllib.error.URLError):
        return False


def _environment() -> dict[str, str]:
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **quiet}
