"""Options of the test run, what it says of laws and the contract, and the servers that several suites need.

`--results FILE` adds what held on which backend and of which toolkit to a file, from which `python -m tests.tables`
makes the tables and `python -m tests.proofs` the list of the tests that prove each law. A server that cannot be started
is a failure, never a skip.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import cpu, scheduling, tables
from tests.waiting import Load

if TYPE_CHECKING:
    from tests.slurm.cluster import Cluster
    from tests.ssh.pool import SshPool
    from tests.stores.fault_proxy import FaultProxy
    from tests.stores.servers import Server

# What is compiled once is kept, whatever the environment says: by pytest, and by all that tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The same few examples in every run; `--hypothesis-profile=many` looks for new ones.
settings.register_profile("few", max_examples=60, derandomize=True, deadline=None)
settings.register_profile("fewest", max_examples=15, derandomize=True, deadline=None)
settings.register_profile("many", max_examples=3000, deadline=None)
settings.load_profile("few")
ENVIRONMENT = pytest.StashKey[pytest.MonkeyPatch]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", action="append", default=[], help="a backend to test; may be given several times")
    parser.addoption("--all-images", action="store_true", help="build and test the image of every version")
    parser.addoption("--python-of-hosts", default=sys.executable, help="the Python of the stand-in's instances")
    parser.addoption("--write-budget", action="store_true", help="make what tests/budget counts the budget")
    parser.addoption("--results", type=Path, help="a file that takes what held of the laws and the contract")
    parser.addoption("--cpu", type=Path, help="a file that takes the CPU time of each test, for `python -m tests.cpu`")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "law(name): the law that the test states")
    config.addinivalue_line("markers", "on_service: the law is of those that a stand-in of SageMaker can tell")
    config.addinivalue_line("markers", "contract(row): the row of the container contract that the test states")
    config.addinivalue_line("markers", "alone: the test bounds a time or counts what the machine does")
    config.addinivalue_line("markers", "turn(backend): `scripts/test --all` alone runs the law's test on the other one")
    config.addinivalue_line(
        "markers", "on_one_machine: the test needs hosts on the machine of their supervisor: not on slurm"
    )
    config.addinivalue_line("markers", "long: the test takes long, and `scripts/test --all` alone runs it")
    config.addinivalue_line("markers", "spins: ranks of the test use TensorFlow or Horovod; set by tests/scheduling.py")
    # A shell lets what it starts in the background ignore Ctrl-C, which tests press: sh(1p), "Signals".
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--results") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(tables.Recorder(config.getoption("--results")))
    leads_workers = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if config.getoption("--cpu") and not leads_workers:
        config.pluginmanager.register(cpu.Meter(config.getoption("--cpu")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if scheduling.group(item.nodeid) == scheduling.SPINNING:
            item.add_marker(pytest.mark.spins)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    gc.disable()  # nothing of what is made is garbage, and looking for some takes a seventh of the time
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    gc.freeze()  # or each collection of garbage would go through thousands of tests


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return scheduling.scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    report = yield
    if report.when == "call" or report.failed:
        for kind, parameter in (("law", "backend"), ("contract", "toolkit")):
            where = getattr(item, "callspec", None) and item.callspec.params.get(parameter)
            names = [name for mark in item.iter_markers(kind) for name in mark.args if where]
            test = item.nodeid.partition("[")[0]
            report.user_properties += [(tables.STATED, [kind, name, where, report.passed, test]) for name in names]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Before all fixtures, for those of a module may start jobs.
    variables: dict[str, str] = {}
    if _is_on(item, "slurm"):
        from tests.slurm import cluster

        variables |= cluster.ENGINE.of_run(item.config).environment()
    if _is_on(item, "ssh", "ssh_pool"):
        from tests.ssh import pool

        variables |= pool.ENGINE.of_run(item.config).environment()
    if variables:
        item.stash[ENVIRONMENT] = patch = pytest.MonkeyPatch()
        for name, value in variables.items():
            patch.setenv(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if ENVIRONMENT in item.stash:  # others test what jobs do with the variables that they inherit
            item.stash[ENVIRONMENT].undo()


def _is_on(item: pytest.Item, backend: str, fixture: str | None = None) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("backend") == backend or (fixture or backend) in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def localstack_server(tmp_path_factory) -> Iterator[Server]:
    from tests.stores import servers

    with servers.started("localstack", tmp_path_factory.mktemp) as server:
        yield server


@pytest.fixture(scope="session")
def ceph_server(tmp_path_factory) -> Iterator[Server]:
    from tests.stores import servers

    with servers.started("ceph", tmp_path_factory.mktemp) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory) -> Iterator[str]:
    """Where the stand-in of SageMaker listens."""
    from tests.interop.sagemaker_service.stand_in import running_service

    with running_service(tmp_path_factory.mktemp("moto")) as platform:
        yield platform.endpoint


@pytest.fixture(scope="session")
def slurm(pytestconfig) -> Cluster:
    """A Slurm of twelve nodes. Tests that use it, or whose `backend` is slurm, find it by SLURM_CONF as users do."""
    from tests.slurm import cluster

    return cluster.ENGINE.of_run(pytestconfig)


@pytest.fixture(scope="session")
def ssh_pool(pytestconfig) -> SshPool:
    """A pool of twelve machines with ssh. Tests that use it, or whose `backend` is ssh, find them by their names."""
    from tests.ssh import pool

    return pool.ENGINE.of_run(pytestconfig)


@pytest.fixture
def stretched() -> Iterator[Callable[[float], float]]:
    """Makes a bound in seconds for a machine with free CPUs one for this machine, as busy as it is during the test."""
    load = Load()
    yield load.stretched
    load.end()


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
