"""Run one of Horovod's test files with pytest on this rank, and print a line of JSON for each test."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

MARK = "HOROVOD_SUITE "
TEST_SECONDS = 120


class Results:
    """A pytest plug-in that prints how each test ended."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.partition("::")[2]
            why = str(report.longrepr).strip().splitlines()[-1:] if report.failed else []
            error = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
            result = {"test": name, "outcome": report.outcome, "why": (error or why or [""])[0]}
            print(f"\n{MARK}{json.dumps(result)}", flush=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            result = {"test": f"collecting {report.nodeid}", "outcome": "failed", "why": str(report.longrepr)[-300:]}
            print(f"\n{MARK}{json.dumps(result)}", flush=True)


if __name__ == "__main__":
    timeout = [f"--timeout={TEST_SECONDS}"] if importlib.util.find_spec("pytest_timeout") else []
    # A failed test must not end the world: the other ranks are to say how their tests ended.
    pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider", *timeout], plugins=[Results()])
