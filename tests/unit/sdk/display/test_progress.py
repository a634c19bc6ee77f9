from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest

from estimator_sdk.display.progress import Progress

PLAN = SimpleNamespace(hosts=("algo-1",), job_name="a", distribution="none", backend="process")
EVENTS = [
    {"event": "channel_fetching", "channel": "train", "source": "s3://b/a"},
    {"event": "channel_progress", "channel": "train", "bytes": 5_000_000, "objects": 2, "seconds": 0.5},
    {"event": "channel_fetched", "channel": "train", "bytes": 1_234_567_890, "objects": 1, "seconds": 2.04},
    {"event": "channel_piped", "channel": "test", "source": "s3://b/c"},
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("out", "kind"), [(io.StringIO(), "xterm"), (Terminal(), "xterm"), (Terminal(), "dumb")])
def test_a_channel_is_shown_when_it_begins_and_when_it_is_there(monkeypatch, out, kind):
    monkeypatch.setenv("TERM", kind)
    progress = Progress(PLAN, "all", out)
    for event in EVENTS:
        progress.on_event("algo-1", event)
    shown = re.sub(r"estimator +[0-9.]+ s  ", "", out.getvalue())
    live = "\rfetching train: 5.0 MB in 2 objects, 10.0 MB/s\x1b[K\r\x1b[K" if out.isatty() and kind != "dumb" else ""
    assert shown == (
        f"fetching train from s3://b/a\n{live}fetched train: 1.2 GB in 1 object in 2.0 s\npiping test from s3://b/c\n"
    )


@pytest.fixture
def shown():
    """What `fit()` shows of events of one host, without the times."""

    def show(*events, hosts=1):
        class Plan:
            pass

        plan, out = Plan(), io.StringIO()
        plan.hosts = range(hosts)
        progress = Progress(plan, "none", out)
        for number, event in enumerate(events):
            progress.on_event(f"algo-{number % hosts + 1}", event)
        return re.sub("^estimator .{6} s  ", "", out.getvalue(), flags=re.M).splitlines()

    return show


RESTORED = {"event": "checkpoint_restored", "attempt": 2, "passed_over": []}


def test_what_was_restored_is_one_line(shown):
    event = {**RESTORED, "base": "000001-00000012", "files": 3, "bytes": 1_234_567}
    assert shown(event) == ["checkpoints: 3 files (1.2 MB) from snapshot 000001-00000012"]
    plain = {**event, "base": "plain", "files": 1, "bytes": 999}
    assert shown(plain) == ["checkpoints: 1 file (999 B) from the plain tree"]
    damaged = {**event, "passed_over": ["000001-00000013: its checksum is wrong"]}
    assert shown(damaged)[0].endswith("; incomplete: 000001-00000013: its checksum is wrong")


def test_nothing_restored_and_what_is_published_is_no_line(shown):
    published = {"event": "checkpoint_published", "snapshot": "000001-00000012", "files": 1, "bytes": 1}
    assert shown({**RESTORED, "base": "nothing", "files": 0, "bytes": 0}, published) == []


def test_what_goes_wrong_is_a_line(shown):
    lag = {"event": "checkpoint_lag", "bytes": 5_000, "seconds": 12.3, "open": []}
    assert shown(lag) == ["checkpoints: 5.0 kB not uploaded for 12 s"]
    assert shown({**lag, "open": ["log.csv"]})[0].endswith("12 s, waiting for log.csv, which is open for writing")
    assert shown({"event": "checkpoint_failed", "reason": "the store is away", "bytes": 1}) == [
        "checkpoints: the store is away"
    ]


def test_outputs_that_do_not_go_up_are_lines_while_the_job_runs(shown):
    failed = {"event": "outputs_failed", "reason": "the store is away"}
    left_out = {"event": "outputs_left_out", "files": ["intermediate/a\nb"], "reason": "the key 'a' is bad"}
    assert shown(failed, left_out) == [
        "outputs: the store is away; trying again",
        "outputs: not uploaded: the key 'a' is bad",
    ]


def test_a_name_that_is_no_text_is_shown_as_a_literal(shown):
    event = {"event": "checkpoint_left_out", "files": ["log é", "a\nb", "\x1b[2J", "\udcff"]}
    assert shown(event) == [r"checkpoints: not saved until closed: log é, 'a\nb', '\x1b[2J', '\udcff'"]
    lag = {"event": "checkpoint_lag", "bytes": 1, "seconds": 5.0, "open": ["\udcff"]}
    assert r"waiting for '\udcff', which" in shown(lag)[0]


def test_a_new_attempt_is_a_line_and_shows_its_phases_anew(shown):
    running = {"event": "phase_started", "phase": "run"}
    failed = {"event": "attempt_failed", "attempt": 1, "reason": "algo-1 was lost", "left": 0}
    assert shown(running, running, failed, failed, running, running, hosts=2) == [
        "running",
        "attempt 1 failed: algo-1 was lost; trying again",
        "attempt 1 failed: algo-1 was lost; trying again",
        "running",
    ]
