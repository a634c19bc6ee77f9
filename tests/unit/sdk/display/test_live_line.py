"""How a terminal shows a line of the log that has no end yet."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from estimator_container.logs.lines import Block, Line

from estimator_sdk.display import live_line
from estimator_sdk.display.live_line import CLEAR, LiveLine, fitted, state_of
from estimator_sdk.display.progress import Progress

PLAN = SimpleNamespace(hosts=("algo-1",), job_name="a", distribution="none", backend="process")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def line(data, rank=0, stream="stderr"):
    return Line(0, "algo-1", rank, stream, data)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" 10 %\r", " 10 %"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[2K\x1b[1A\x1b]0;title\x07up", "up"),
        (b"a\x07\0\tb\x1b", "ab"),
        ("left\u202eright".encode(), "leftright"),
        ("45 % █▌".encode(), "45 % █▌"),
        (b"\xff", r"\xff"),
    ],
)
def test_a_state_holds_nothing_that_a_terminal_acts_on(data, shown):
    assert state_of(data) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("abcdef", "abcd"), ("日本語", "日本"), ("日本a語", "日本"), ("e\u0301abcd", "e\u0301abc")]
)
def test_a_state_fits_into_the_columns_of_a_terminal(text, shown):
    assert fitted(text, 4) == shown


def test_of_several_ranks_the_lowest_that_goes_on_is_shown(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(live_line, "time", SimpleNamespace(monotonic=lambda: now[0]))
    chosen = LiveLine()
    for at, rank, shown in [(0, 3, True), (0.1, 1, True), (0.2, 3, False), (0.3, 1, True), (1.2, 3, False)]:
        now[0] = at
        assert (chosen.text_of(line(b"10 %", rank)) is not None) is shown
    now[0] = 1.4
    assert chosen.text_of(line(b"20 %", 3)) == f"{CLEAR}[1,3]<stderr>:20 %"


def test_the_next_whole_line_takes_its_place(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    progress = Progress(PLAN, "all", out)
    progress.on_open_line(line(b"10 %\r"))
    progress.on_block(Block(0, "algo-1", 0, "stdout", b"hello\n"))
    progress.on_open_line(line(b"20 %\r"))
    progress.close()
    assert out.getvalue() == (f"{CLEAR}[1,0]<stderr>:10 %{CLEAR}[1,0]<stdout>:hello\n{CLEAR}[1,0]<stderr>:20 %{CLEAR}")


@pytest.mark.parametrize(("out", "logs"), [(io.StringIO(), "all"), (Terminal(), "none"), (Terminal(), "rank0")])
def test_it_is_shown_on_a_terminal_only_and_of_the_chosen_ranks(out, logs):
    Progress(PLAN, logs, out).on_open_line(line(b"10 %", rank=1))
    assert out.getvalue() == ""
