"""Options of the test run, the table of laws, and the servers that several suites need.

`--laws-table FILE` writes what held on which backend. A server that cannot be started is a failure, never a skip.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.stores.fault_proxy import FaultProxy
    from tests.stores.servers import Server

LAWS = Path(__file__).parent / "conformance" / "laws.txt"
_RESULTS = pytest.StashKey[dict[tuple[str, str], list[bool]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", action="append", default=[], help="a backend to test; may be given several times")
    parser.addoption("--all-images", action="store_true", help="build and test the image of every version")
    parser.addoption("--laws-table", type=Path, help="where to write the table of laws")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "law(name): the law that the test states")
    config.stash[_RESULTS] = defaultdict(list)


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
    path = session.config.getoption("--laws-table")
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


@pytest.fixture(scope="session")
def localstack_server(tmp_path_factory) -> Iterator[Server]:
    from tests.stores.servers import BUCKET, localstack

    with localstack(tmp_path_factory.mktemp("localstack")) as server:
        server.client().create_bucket(Bucket=BUCKET)
        yield server


@pytest.fixture(scope="session")
def ceph_server(tmp_path_factory) -> Iterator[Server]:
    from tests.stores.servers import BUCKET, ceph

    with ceph(tmp_path_factory.mktemp("ceph")) as server:
        server.client().create_bucket(Bucket=BUCKET)
        yield server


@pytest.fixture
def no_aws(monkeypatch, tmp_path):
    """Nothing of the user's own AWS settings is seen."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
def proxy(localstack_server, monkeypatch, no_aws) -> Iterator[FaultProxy]:
    """Stands before LocalStack; stores opened now go through it."""
    from tests.stores.fault_proxy import FaultProxy

    made = FaultProxy(localstack_server.endpoint)
    for name, value in localstack_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", made.endpoint)
    yield made
    made.close()
