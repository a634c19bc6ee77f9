from __future__ import annotations

import io
import re
import sys

import pytest

from estimator_sdk.cli.reports.progress_bar import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def shown(monkeypatch, out: io.StringIO, total: int | None) -> str:
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr("estimator_sdk.cli.reports.progress_bar._SECONDS", 0.0)
    with Bar("fetching", total) as bar:
        bar(5_000_000, 1)
        bar(10_000_000, 2)
    return re.sub(r"[0-9.]+ s$", "S s", re.sub(r"[0-9.]+ .?B/s", "R/s", out.getvalue()).strip())


def test_a_log_gets_a_line_at_each_end(monkeypatch):
    assert shown(monkeypatch, io.StringIO(), 10_000_000) == "fetching …\nfetching: 10.0 MB in S s"


def test_a_person_sees_a_bar(monkeypatch):
    drawn = shown(monkeypatch, Terminal(), 10_000_000)
    assert f"\rfetching  [{'#' * 12}{'.' * 12}] 50 %  5.0 MB, R/s" in drawn
    assert f"\rfetching  [{'#' * 24}] 100 %  10.0 MB, R/s" in drawn


def test_a_terminal_that_draws_no_line_anew_gets_those_of_a_log(monkeypatch):
    for kind in ("dumb", None):
        monkeypatch.setenv("TERM", kind) if kind else monkeypatch.delenv("TERM")
        assert shown(monkeypatch, Terminal(), None) == "fetching …\nfetching: 10.0 MB in S s"


def test_without_a_total_there_is_no_share(monkeypatch):
    assert "\rfetching  5.0 MB, R/s" in shown(monkeypatch, Terminal(), None)


def test_a_failure_is_said(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    with pytest.raises(KeyError), Bar("fetching"):
        raise KeyError
    assert out.getvalue().endswith("until it failed\n")
