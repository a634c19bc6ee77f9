"""What a store does when the network and the server do not do their part: a real server behind a faulty wire."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from estimator_container.agents.checkpoints.format import NOTHING
from estimator_container.agents.checkpoints.publisher import Publisher
from estimator_container.agents.checkpoints.restore import claim, restore
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.storage import Conflict, Object, SourceChanged, StoreUnavailable, open_store
from estimator_container.storage.s3 import transfer as s3_transfer

from tests.waiting import SECONDS, wait_for

MIB = 1 << 20
LARGE = 2 * s3_transfer.AMAZON.range + MIB  # bytes of what comes in three ranges


@pytest.fixture(autouse=True)
def _pace_of_amazon(monkeypatch):
    """The more requests there are, the more can fail."""
    monkeypatch.setattr(s3_transfer, "ELSEWHERE", s3_transfer.AMAZON)


FAULTS = ["cut", "503", "truncate", "lose the answer"]


def first(count: int, fault: str, method: str | None = None) -> Callable:
    """Do it to the first requests (of a method)."""
    left = [count]

    def choose(request):
        if method is not None and request.method != method:
            return None
        left[0] -= 1
        return fault if left[0] >= 0 else None

    return choose


def every(nth: int, fault: str) -> Callable:
    return lambda request: fault if request.number % nth == nth - 1 else None


def names_below(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_not_noticed(proxy, through_proxy, folder, fault):
    store = through_proxy()
    proxy.choose = first(2, fault)
    store.write("key", b"x" * 1000)
    proxy.choose = first(2, fault)
    assert store.read("key") == b"x" * 1000
    proxy.choose = first(2, fault)
    assert store.head("key").size == 1000
    proxy.choose = first(2, fault)
    assert store.head("missing") is None
    proxy.choose = first(2, fault)
    assert [found.key for found in store.list()] == ["key"]
    proxy.choose = first(2, fault)
    assert store.download("key", str(folder / "key")).size == 1000
    proxy.choose = first(2, fault)
    store.delete(["key"])
    assert store.head("key") is None


@pytest.mark.parametrize("fault", FAULTS)
def test_large_files_are_whole_though_every_third_request_fails(proxy, through_proxy, folder, fault):
    store = through_proxy(retry_seconds=30)
    data = os.urandom(LARGE)
    (folder / "file").write_bytes(data)
    proxy.choose = every(3, fault)
    sent = store.upload(str(folder / "file"), "key")
    got = store.download("key", str(folder / "copy"))
    assert sent == got
    assert got.sha256 == hashlib.sha256(data).hexdigest()
    assert (folder / "copy").read_bytes() == data


@pytest.mark.parametrize("fault", FAULTS)
def test_many_files_are_whole_though_every_fifth_request_fails(proxy, through_proxy, folder, fault):
    store = through_proxy(retry_seconds=30)
    (folder / "up").mkdir()
    for number in range(60):
        (folder / "up" / f"{number}").write_bytes(b"%d" % number * 500)
    proxy.choose = every(5, fault)
    sent = store.upload_many((str(folder / "up" / f"{number}"), f"{number}") for number in range(60))
    got = store.download_many((f"{number}", str(folder / "down" / f"{number}")) for number in range(60))
    assert sent == got
    for number in range(60):
        assert (folder / "down" / f"{number}").read_bytes() == b"%d" % number * 500


@pytest.mark.alone
@pytest.mark.parametrize("fault", FAULTS)
def test_after_the_deadline_it_says_so_in_one_sentence_and_leaves_no_file(proxy, through_proxy, folder, fault):
    through_proxy().write("key", b"x" * 1000)
    (folder / "large").write_bytes(bytes(20 * MIB))
    store = through_proxy(retry_seconds=0.3)
    proxy.choose = lambda request: fault
    for attempt in (
        lambda: store.write("new", b"1"),
        lambda: store.read("key"),
        lambda: store.head("key"),
        lambda: list(store.list()),
        lambda: store.download("key", str(folder / "key")),
        lambda: store.upload(__file__, "new"),
        lambda: store.upload(str(folder / "large"), "new-large"),
        lambda: store.download_many([("key", str(folder / "key"))]),
    ):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable) as raised:
            attempt()
        assert time.monotonic() - began < 9  # and not the 10 s that it takes without `retry_seconds`
        message = str(raised.value)
        assert message.startswith("s3://stores/")
        assert "could not be reached for 0.3 s (" in message
        assert "\n" not in message
    assert names_below(folder) == ["large"]
    proxy.choose = lambda request: None
    assert store.head("new-large") is None


def test_no_range_waits_for_another_where_the_size_is_known(proxy, through_proxy, folder):
    store = through_proxy()
    data = os.urandom(LARGE)
    (folder / "large").write_bytes(data)
    store.upload(str(folder / "large"), "key")
    proxy.requests.clear()
    proxy.choose = lambda request: "stall" if request.number == 0 else None
    asked = threading.Thread(target=store.download, args=(Object("key", len(data), ""), str(folder / "copy")))
    asked.start()
    assert proxy.stalled.wait(SECONDS)
    wait_for(lambda: len(proxy.requests) == 3)
    proxy.release()
    asked.join(SECONDS)
    assert (folder / "copy").read_bytes() == data


def test_a_range_goes_on_where_its_answer_ended(proxy, through_proxy, folder):
    store = through_proxy()
    data = os.urandom(12 * MIB)
    (folder / "large").write_bytes(data)
    store.upload(str(folder / "large"), "key")
    proxy.requests.clear()
    proxy.choose = lambda request: "end early" if request.number == 0 else None
    got = store.download(Object("key", len(data), ""), str(folder / "copy"))
    assert got.sha256 == hashlib.sha256(data).hexdigest()
    assert (folder / "copy").read_bytes() == data
    first, second = (int(request.range.removeprefix("bytes=").partition("-")[0]) for request in proxy.requests)
    assert (first, second >= 2 * MIB) == (0, True)


@pytest.mark.parametrize("size", [20 * MIB - 1, 20 * MIB + 1, 30 * MIB])
def test_an_object_of_another_size_than_is_known_is_another_version(through_proxy, folder, size):
    store = through_proxy()
    (folder / "large").write_bytes(bytes(20 * MIB))
    store.upload(str(folder / "large"), "key")
    with pytest.raises(SourceChanged, match="was overwritten during the download"):
        store.download(Object("key", size, ""), str(folder / "copy"))
    assert names_below(folder) == ["large"]


def test_a_snapshot_whose_large_file_has_lost_its_end_is_passed_over(through_proxy, folder):
    store = through_proxy()
    watched = WatchedFolder(str(folder))
    publisher = Publisher(store, claim(store, "job"), watched)
    publisher.begin_with(None, NOTHING)
    for content in (b"1", b"2"):
        (folder / "model").write_bytes(content * (20 * MIB))
        state = watched.state(publisher.stamps, 10.0)
        newest = publisher.publish(state).manifest
    watched.close()
    store.write(newest.files[0].object, b"2" * (9 * MIB))
    restored = restore(store, str(folder))
    assert restored.base != str(newest.name)
    assert "are not those that were written" in restored.passed_over[0]
    assert (folder / "model").read_bytes() == b"1" * (20 * MIB)


def test_a_download_that_fails_half_way_leaves_no_file(proxy, through_proxy, folder):
    store = through_proxy(retry_seconds=0.3)
    (folder / "large").write_bytes(os.urandom(LARGE))
    store.upload(str(folder / "large"), "key")
    proxy.requests.clear()
    proxy.choose = lambda request: "cut" if request.number >= 2 else None
    with pytest.raises(StoreUnavailable):
        store.download("key", str(folder / "copy"))
    assert names_below(folder) == ["large"]


def test_a_server_that_says_nothing_is_a_fault_after_stall_seconds(proxy, through_proxy, folder):
    store = through_proxy(stall_seconds=2.0)  # in which the server answers otherwise, on a busy machine too
    proxy.choose = first(1, "stall")
    store.write("key", b"1")
    proxy.choose = first(1, "stall")
    assert store.download("key", str(folder / "key")).size == 1
    store = through_proxy(stall_seconds=0.3, retry_seconds=0.5)
    proxy.choose = lambda request: "stall"
    with pytest.raises(StoreUnavailable, match="timed out"):
        store.read("key")


def test_a_server_that_is_not_there(proxy, through_proxy):
    proxy.close()
    with pytest.raises(StoreUnavailable, match="connection refused"):
        through_proxy(retry_seconds=0.2).read("key")


def test_a_conditional_write_whose_answer_is_lost_has_still_won(proxy, through_proxy):
    store = through_proxy()
    store.write("other", b"1", if_absent=True)  # the condition has been tried
    proxy.choose = first(1, "lose the answer")
    etag = store.write("key", b"mine", if_absent=True)
    assert store.head("key").etag == etag


def test_a_conditional_write_whose_answer_is_lost_does_not_take_anothers_write_for_its_own(proxy, through_proxy):
    store = through_proxy()
    store.write("key", b"theirs", if_absent=True)
    proxy.choose = first(1, "lose the answer")
    with pytest.raises(Conflict):
        store.write("key", b"mine", if_absent=True)
    assert store.read("key") == b"theirs"


def test_a_listing_cut_between_pages_goes_on_where_it_was(proxy, many_on_localstack):
    uri, keys = many_on_localstack
    listing = open_store(uri).list()
    seen = [next(listing).key]
    assert len(proxy.requests) == 1  # the first page is had without the second
    proxy.choose = first(2, "truncate")
    seen += [found.key for found in listing]
    assert seen == keys


def test_no_request_is_sent_when_a_store_is_opened(proxy, through_proxy):
    through_proxy()
    assert proxy.requests == []


# A process that ends.

STALLED = """
import contextlib, signal, sys, threading
from estimator_container.storage import StorageError, open_store
from estimator_container.storage.parallel import in_threads
store = open_store(sys.argv[1], retry_seconds=3600.0, stall_seconds=3600.0)  # nothing else ends it
def work():
    with contextlib.suppress(StorageError if sys.argv[3] == "exit" else ()):
        store.download_many((name, f"{sys.argv[2]}/{name}") for name in [*map(str, range(50)), "large"])
def interrupt_elsewhere():
    if sys.stdin.readline():  # and not its end, which comes when somebody else has interrupted the process
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
if sys.argv[3] == "exit":
    threading.Thread(target=work, daemon=True).start()
    sys.stdin.readline()
else:
    threading.Thread(target=interrupt_elsewhere, daemon=True).start()
    in_threads(lambda _: work(), [1], None) if sys.argv[3] == "in threads" else work()
"""


@pytest.fixture
def stalled_process(proxy, through_proxy, folder):
    """A process in the middle of a transfer that has stalled."""
    store = through_proxy()
    for number in range(50):
        store.write(f"{number}", b"1")
    (folder / "large").write_bytes(bytes(20 * MIB))
    store.upload(str(folder / "large"), "large")
    (folder / "large").unlink()
    running = []

    def start(how: str) -> subprocess.Popen:
        proxy.requests.clear()
        proxy.choose = lambda request: "stall" if request.number > 20 else None
        command = [sys.executable, "-c", STALLED, store.uri, str(folder), how]
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        assert proxy.stalled.wait(SECONDS)
        return running[0]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_ctrl_c_ends_a_stalled_transfer_at_once_without_partial_files(stalled_process, folder):
    process = stalled_process("wait")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    assert not [name for name in names_below(folder) if not name.isdigit()]


@pytest.mark.parametrize("how", ["wait", "in threads"])
def test_an_interrupt_that_does_not_wake_the_waiting_thread_is_heard_all_the_same(stalled_process, how):
    """One that comes just before the wait does not; here another thread gets it."""
    process = stalled_process(how)
    process.stdin.write("\n")
    process.stdin.flush()
    _, errors = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT


def test_a_process_exits_in_the_middle_of_a_transfer_in_silence(stalled_process, folder):
    process = stalled_process("exit")
    process.stdin.write("\n")
    process.stdin.flush()
    _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert not [name for name in names_below(folder) if not name.isdigit()]


FORKED = """
import os, sys
from estimator_container.storage import StorageError, open_store
store = open_store(sys.argv[1])
store.write("key", b"1")
if os.fork() == 0:
    for attempt in (lambda: store.read("key"), lambda: open_store(sys.argv[1])):
        try:
            attempt()
        except StorageError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
print(store.read("key"))
"""


def test_a_forked_process_is_told_so_and_does_not_wait_for_ever(proxy, through_proxy):
    command = [sys.executable, "-c", FORKED, through_proxy().uri]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout.splitlines()
    assert "belongs to another process" in said[0]
    assert "open the first store after the fork" in said[1]
    assert said[2:] == ["b'1'"]
