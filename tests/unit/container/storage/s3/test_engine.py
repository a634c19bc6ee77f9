"""Work beside the loop of the s3 stores."""

from __future__ import annotations

import os
import threading

from estimator_container.storage.s3.engine import engine


def test_what_computes_gives_way_and_what_waits_for_a_disk_does_not():
    own = os.getpriority(os.PRIO_PROCESS, 0)

    def priority() -> tuple[int, str]:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), threading.current_thread().name

    computing, thread = engine().run(engine().computing(priority))
    assert computing == min(own + 5, 19), thread
    assert engine().run(engine().on_disk(priority))[0] == own
    assert os.getpriority(os.PRIO_PROCESS, 0) == own  # of the caller
