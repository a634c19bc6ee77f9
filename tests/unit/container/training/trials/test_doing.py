"""What a thread does, by its stack."""

import contextlib
import pathlib
import queue
import socket
import sys
import threading
import time

import pytest
from estimator_container.training.trials import doing

from tests.waiting import SECONDS


@contextlib.contextmanager
def thread_in(work, release):
    """A thread in the middle of that work, of which there is the stack."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield lambda: sys._current_frames()[thread.ident]
    finally:
        release()
        thread.join(SECONDS)


def seen_in(work, release, what, words=""):
    """What a thread is seen to do, once it does that, in a place with these words."""

    def is_seen(found):
        return found.what == what and words in found.place

    with thread_in(work, release) as frame:
        until = time.monotonic() + SECONDS
        while not is_seen(found := doing.doing(frame())) and time.monotonic() < until:
            time.sleep(0.001)
    return found


def test_who_reads_from_a_socket_asks_a_store():
    here, there = socket.socketpair()
    with here, there, there.makefile("rb") as file:
        found = seen_in(lambda: file.read(1), lambda: here.send(b"x"), doing.STORE)
    assert found.what == doing.STORE
    assert found.place.startswith("test_doing.py:")


def test_who_takes_from_a_queue_waits():
    given = queue.Queue()
    assert seen_in(given.get, lambda: given.put(1), doing.WAITING).what == doing.WAITING


def test_who_opens_and_reads_reads_files(tmp_path):
    is_over = threading.Event()
    path = tmp_path / "sample"
    path.write_bytes(bytes(1000))

    def read():
        while not is_over.is_set():
            pathlib.Path(path).read_bytes()

    assert seen_in(read, is_over.set, doing.FILES).what == doing.FILES


def test_a_built_in_function_that_reads_is_known_by_its_name(tmp_path):
    is_over = threading.Event()
    path = tmp_path / "sample"
    path.write_bytes(bytes(8 << 20))

    def read():
        with path.open("rb", buffering=0) as file:
            while not is_over.is_set():
                file.seek(0)
                file.read()

    assert seen_in(read, is_over.set, doing.FILES).what == doing.FILES


def test_whatever_else_takes_time_is_decoding_and_its_line_is_told():
    is_over = threading.Event()

    def decode():
        while not is_over.is_set():
            time.sleep(0.05)

    found = seen_in(decode, is_over.set, doing.DECODE, "sleep")
    if sys.version_info >= (3, 11):
        assert found.place.endswith(" time.sleep(0.05)")
    assert found.place.startswith("test_doing.py:")


@pytest.mark.parametrize("name", ["random_crop", "augment", "color_jitter", "_flip_image"])
def test_random_changes_are_known_by_their_names(name):
    is_over = threading.Event()
    space = {"time": time, "is_over": is_over}
    exec(f"def {name}():\n while not is_over.is_set():\n  time.sleep(0.01)", space)
    assert seen_in(space[name], is_over.set, doing.AUGMENTATION).what == doing.AUGMENTATION
