"""Work beside the loop of the s3 stores."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading

from estimator_container.storage.s3 import engine as engine_module
from estimator_container.storage.s3.engine import engine

from tests.waiting import SECONDS

PR_SET_NAME = 15  # <linux/prctl.h>


def test_what_computes_gives_way_and_what_waits_for_a_disk_does_not():
    own = os.getpriority(os.PRIO_PROCESS, 0)

    def priority() -> tuple[int, str]:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), threading.current_thread().name

    computing, thread = engine().run(engine().computing(priority))
    assert computing == min(own + 5, 19), thread
    assert engine().run(engine().on_disk(priority))[0] == own
    assert os.getpriority(os.PRIO_PROCESS, 0) == own  # of the caller


def test_the_interpreter_ends_when_the_clients_own_threads_rest(monkeypatch):
    """One that computes, and then waits for the interpreter to say so."""
    begun, over = threading.Event(), []

    def work() -> None:
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"tokio-rt-worker", 0, 0, 0)
        begun.set()
        hashlib.pbkdf2_hmac("sha512", b"a", b"b", 200_000)
        over.append(True)

    monkeypatch.setattr(engine_module, "_REST_SECONDS", SECONDS)
    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(SECONDS)
    engine_module._wait_until_the_client_rests()
    assert over
    thread.join()
