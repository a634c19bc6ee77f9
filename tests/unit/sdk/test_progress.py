from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest

from estimator_sdk.progress import Progress

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


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_a_channel_is_shown_when_it_begins_and_when_it_is_there(out):
    progress = Progress(PLAN, "all", out)
    for event in EVENTS:
        progress.on_event("algo-1", event)
    shown = re.sub(r"estimator +[0-9.]+ s  ", "", out.getvalue())
    live = "\rfetching train: 5.0 MB in 2 objects, 10.0 MB/s\x1b[K\r\x1b[K" if out.isatty() else ""
    assert shown == (
        f"fetching train from s3://b/a\n{live}fetched train: 1.2 GB in 1 object in 2.0 s\npiping test from s3://b/c\n"
    )
