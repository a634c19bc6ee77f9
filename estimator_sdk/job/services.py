"""How jobs are that run at a service: asked for a while, for an answer may take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..backends.status import FINAL

if TYPE_CHECKING:
    from ..backends.port import StartedJob

ASKING_SECONDS = 3.0  # that services may take to say how their jobs are; what was last heard of a job is shown then
MOST_ASKED = 20  # jobs, the newest


def ask(noted: Sequence[StartedJob]) -> None:
    """Have services say how the newest of their jobs are that have not ended, for so long."""
    running = [each for each in noted if each.summary().status not in FINAL]
    running.sort(key=lambda each: each.summary().created or 0.0, reverse=True)
    deadline = time.monotonic() + ASKING_SECONDS
    threads = [threading.Thread(target=_hear, args=(each,), daemon=True) for each in running[:MOST_ASKED]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _hear(job: StartedJob) -> None:
    with suppress(Exception):  # no credentials, no network, a job that is gone: what was last heard stays
        job.record()
