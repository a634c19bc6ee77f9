"""The laws run on every backend that is named: `pytest tests/conformance --backend process`.

After the run, `--laws-table FILE` writes what held on which backend.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends import BUILT_IN

LAWS = Path(__file__).parent / "laws.txt"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", action="append", default=[], help="a backend to test; may be given several times")
    parser.addoption("--laws-table", type=Path, help="where to write the table of laws")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "law(name): the law of the suite that the test states")
    config.stash[_RESULTS] = defaultdict(list)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("backend") or list(BUILT_IN)
        metafunc.parametrize("backend", chosen, scope="session")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the jobs of the user."""
    folder = tmp_path_factory.mktemp("home")
    os.environ["ESTIMATOR_HOME"] = str(folder)
    yield folder
    del os.environ["ESTIMATOR_HOME"]


@dataclass
class Script:
    """Runs a training script as a job and hands out what is left of it."""

    backend: str
    folder: Path

    def estimator(
        self,
        files: str | Mapping[str, str | bytes],
        *,
        hosts: int = 1,
        processes: int | None = None,
        mpi_options: str | None = None,
        **arguments: Any,
    ) -> Estimator:
        """An estimator for a script given as text, or for a folder of files whose `train.py` is run."""
        source = self.folder / f"source-{len(list(self.folder.iterdir()))}"
        contents = {"train.py": files} if isinstance(files, str) else files
        for name, content in contents.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if processes is not None:
            mpi = {"enabled": True, "processes_per_host": processes}
            arguments["distribution"] = {"mpi": {**mpi, **({"custom_mpi_options": mpi_options} if mpi_options else {})}}
        return Estimator(
            **{
                "entry_point": "train.py",
                "source_dir": str(source),
                "instance_count": hosts,
                "backend": self.backend,
                "base_job_name": "law",
                **arguments,
            }
        )

    def run(self, files: str | Mapping[str, str | bytes], *, inputs: Any = None, **arguments: Any) -> Job:
        """Run to the end, which must be a good one."""
        return self.estimator(files, **arguments).fit(inputs, logs="none")

    def fail(self, files: str | Mapping[str, str | bytes], *, inputs: Any = None, **arguments: Any) -> JobFailed:
        """Run to the end, which must be a failure."""
        with pytest.raises(JobFailed) as failed:
            self.run(files, inputs=inputs, **arguments)
        return failed.value


@pytest.fixture
def script(backend: str, tmp_path: Path) -> Script:
    return Script(backend, tmp_path)


@pytest.fixture
def out() -> Callable[..., bytes]:
    """What was written, as bytes: by a rank, a host, to a stream."""

    def joined(job: Job, **choice: Any) -> bytes:
        return b"".join(line.data for line in job.logs(**{"stream": "stdout", **choice}))

    return joined


# The table of laws.

_RESULTS = pytest.StashKey[dict[tuple[str, str], list[bool]]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
    if backend and (report.when == "call" or report.failed):
        for mark in item.iter_markers("law"):
            for law in mark.args:
                item.config.stash[_RESULTS][law, backend].append(report.passed)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("laws_table", None)
    if path:
        path.write_text(_table(session.config.stash[_RESULTS]), encoding="utf-8")


def _table(results: Mapping[tuple[str, str], list[bool]]) -> str:
    laws = dict(line.split(" ", 1) for line in LAWS.read_text(encoding="utf-8").splitlines() if line)
    backends = sorted({backend for _, backend in results})
    rows = [
        "# The laws, and where they hold",
        "",
        "One behaviour on every backend. Each law is a test in `tests/conformance/`, run with real processes and a",
        "real mpirun; this table is written by that run. A dash: no test states it yet.",
        "",
        f"| law | what it says | {' | '.join(backends)} |",
        f"|---|---|{'---|' * len(backends)}",
    ]
    for law, text in laws.items():
        cells = []
        for backend in backends:
            outcomes = results.get((law, backend))
            cells.append("–" if not outcomes else "holds" if all(outcomes) else "**broken**")
        rows.append(f"| {law} | {text} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
