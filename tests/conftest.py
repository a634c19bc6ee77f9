"""Options of the test run, the tables that it writes, and the servers that several suites need.

`--laws-table FILE` writes what held on which backend, `--contract-table FILE` what held of which toolkit. A server that
cannot be started is a failure, never a skip.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import tables

if TYPE_CHECKING:
    from tests.stores.fault_proxy import FaultProxy
    from tests.stores.servers import Server

# The same few examples in every run; `--hypothesis-profile=many` looks for new ones.
settings.register_profile("few", max_examples=60, derandomize=True, deadline=None)
settings.register_profile("many", max_examples=3000, deadline=None)
settings.load_profile("few")

_LAWS = pytest.StashKey[tables.Results]()
_CONTRACT = pytest.StashKey[tables.Results]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", action="append", default=[], help="a backend to test; may be given several times")
    parser.addoption("--all-images", action="store_true", help="build and test the image of every version")
    parser.addoption("--write-budget", action="store_true", help="make what tests/budget counts the budget")
    parser.addoption("--laws-table", type=Path, help="where to write the table of laws")
    parser.addoption("--contract-table", type=Path, help="where to write the table of the container contract")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "law(name): the law that the test states")
    config.addinivalue_line("markers", "on_service: the law is of those that a stand-in of SageMaker can tell")
    config.addinivalue_line("markers", "contract(row): the row of the container contract that the test states")
    config.stash[_LAWS] = defaultdict(list)
    config.stash[_CONTRACT] = defaultdict(list)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.when == "call" or report.failed:
        for mark, parameter, results in (("law", "backend", _LAWS), ("contract", "toolkit", _CONTRACT)):
            of = getattr(item, "callspec", None) and item.callspec.params.get(parameter)
            for each in item.iter_markers(mark):
                for name in each.args if of else ():
                    item.config.stash[results][name, of].append(report.passed)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    for option, table, results in (
        ("--laws-table", tables.of_laws, _LAWS),
        ("--contract-table", tables.of_contract, _CONTRACT),
    ):
        path = session.config.getoption(option)
        if path:
            path.write_text(table(session.config.stash[results]), encoding="utf-8")


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


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory) -> Iterator[str]:
    """Where the stand-in of SageMaker listens."""
    from tests.interop.sagemaker_service.stand_in import running_service

    with running_service(tmp_path_factory.mktemp("moto")) as platform:
        yield platform.endpoint


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
