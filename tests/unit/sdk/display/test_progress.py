from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from estimator_container.contract import agent_events, events

from estimator_sdk.display.progress import Progress

PLAN = SimpleNamespace(hosts=("algo-1",), job_name="a", distribution="none", backend="process")
EVENTS = [
    agent_events.ChannelFetching("train", "s3://b/a"),
    agent_events.ChannelProgress("train", 5_000_000, 2, 0.5),
    agent_events.ChannelFetched("train", 1_234_567_890, 1, 2.04),
    agent_events.ChannelPiped("test", "s3://b/c"),
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

    def show(*told, hosts=1, logs="none"):
        class Plan:
            pass

        plan, out = Plan(), io.StringIO()
        plan.hosts = range(hosts)
        progress = Progress(plan, logs, out)
        for number, event in enumerate(told):
            progress.on_event(f"algo-{number % hosts + 1}", event)
        return re.sub("^estimator .{6} s  ", "", out.getvalue(), flags=re.M).splitlines()

    return show


def test_nothing_restored_and_what_is_published_is_no_line(shown):
    published = agent_events.CheckpointPublished("000001-00000012", 1, 1, 1, 0.1)
    assert shown(agent_events.CheckpointRestored(2, (), "nothing", 0, 0), published) == []


def test_what_is_published_after_a_wait_is_a_line(shown):
    published = agent_events.CheckpointPublished("000001-00000012", 1, 1, 1, 0.1)
    assert shown(agent_events.CheckpointFailed("the store is away", 1), published, published) == [
        "checkpoints: the store is away",
        "checkpoints: snapshot 000001-00000012 is in the store",
    ]


def test_a_new_attempt_is_a_line_and_shows_its_phases_anew(shown):
    running = events.PhaseStarted("run")
    failed = events.AttemptFailed(1, "algo-1 was lost", 0)
    assert shown(running, running, failed, failed, running, running, hosts=2) == [
        "running",
        "attempt 1 failed: algo-1 was lost; trying again",
        "attempt 1 failed: algo-1 was lost; trying again",
        "running",
    ]


def test_a_stop_is_one_line_however_many_hosts_there_are(shown):
    assert shown(events.Stopping(), events.Stopping(), hosts=2) == ["stopping"]


@pytest.mark.parametrize("logs", ["all", "none"])
def test_who_shows_a_job_once_more_says_what_is_new_alone(logs):
    out = io.StringIO()
    progress = Progress(PLAN, logs, out)
    said = [events.ServiceStatus("pending", "Priority"), events.PhaseStarted("run")]
    for event in said:
        progress.on_event("algo-1", event)
    progress._started -= 1000.0
    before = len(out.getvalue())
    again = progress.again()
    for event in [*said, events.ServiceStatus("pending", ""), events.Stopping()]:
        again.on_event("algo-1", event)
    new = out.getvalue()[before:].splitlines()
    assert [re.fullmatch(r"estimator 100\d\.\d s  (.*)", line)[1] for line in new] == ["pending", "stopping"]


@pytest.mark.parametrize(("logs", "lines"), [("all", 0), ("rank0", 0), ("none", 1)])
def test_what_the_toolkit_says_itself_is_shown_where_its_log_is_not(shown, logs, lines):
    assert len(shown(events.StepStarted("train", 1, 2, "python train.py"), logs=logs)) == lines


def test_at_the_end_the_last_snapshot_is_named():
    out = io.StringIO()
    progress = Progress(PLAN, "none", out)
    for number in range(3):
        progress.on_event("algo-1", agent_events.CheckpointPublished(f"000001-0000000{number}", 2, 1_500, 10, 0.1))
    state = SimpleNamespace(status="Completed", reason="", model_data=None)
    progress.ended(SimpleNamespace(name="a", record=lambda: state, log_files=list))
    assert "kept   3 snapshots, the last 000001-00000002 (2 files, 1.5 kB)\n" in out.getvalue()
