"""What every store does, on every store. Each test runs on a folder, on LocalStack and on Ceph.

Where a law does not hold on one of them, this table says so, and why; nothing is skipped:

| law | where it does not hold | why |
|---|---|---|
| (all hold) | | Ceph's radosgw 16 compares If-Match with the bare etag only; the store finds that out and sends it so |
"""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from estimator_container.storage import (
    Conflict,
    Digest,
    InvalidLocation,
    NoSuchBucket,
    NotFound,
    Object,
    SourceChanged,
    open_store,
)
from estimator_container.storage.s3.transfer import ELSEWHERE
from estimator_container.storage.source import UploadSource

MIB = 1 << 20
WRITERS = 16
ODD_KEYS = [
    "a b",
    "plus+plus",
    "percent%20percent",
    "per%cent",
    "ünïcode/日本語.txt",
    "hash#question?and&equals=",
    "quote'\"`",
    "back\\slash",
    "[brackets]{braces}<angles>",
    "colon:semicolon;comma,star*",
    "tilde~at@dollar$bang!",
    "pipe|caret^",
    ".hidden",
    "trailing.",
    " leading and trailing ",
    ".estimator-notes",
]


def digest(data: bytes) -> Digest:
    return Digest(len(data), hashlib.sha256(data).hexdigest())


def random_file(path, size: int) -> bytes:
    data = os.urandom(size)
    path.write_bytes(data)
    return data


def files_below(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# One object.


def test_what_was_written_is_read(store):
    etag = store.write("a/b.txt", b"hello")
    assert store.read("a/b.txt") == b"hello"
    assert store.head("a/b.txt") == Object("a/b.txt", 5, etag)
    assert list(store.list()) == [Object("a/b.txt", 5, etag)]


def test_a_write_replaces_all_of_it_and_the_etag_changes(store):
    first = store.write("key", b"a longer text")
    second = store.write("key", b"short")
    assert store.read("key") == b"short"
    assert first != second


def test_two_writes_of_the_same_size_have_different_etags(store):
    etags = [store.write("key", b"%03d" % number) for number in range(20)]
    assert len(set(etags)) == 20


def test_an_empty_object_is_an_object(store, folder):
    (folder / "nothing").touch()
    store.upload(str(folder / "nothing"), "uploaded")
    store.write("written", b"")
    for key in ("uploaded", "written"):
        assert store.read(key) == b""
        assert store.head(key).size == 0
        assert store.download(key, str(folder / key)) == digest(b"")
    assert [(found.key, found.size) for found in store.list()] == [("uploaded", 0), ("written", 0)]
    assert store.download(next(store.list()), str(folder / "again")) == digest(b"")


def test_a_missing_key_is_said_to_be_missing_and_leaves_no_file(store, folder):
    store.write("there", b"1")
    assert store.head("missing") is None
    assert store.head("there/below") is None
    for attempt in (lambda: store.read("missing"), lambda: store.download("missing", str(folder / "missing"))):
        with pytest.raises(NotFound, match=f"{store.uri}/missing does not exist"):
            attempt()
    assert files_below(folder) == {}


def test_a_range_is_what_was_asked_for_as_far_as_there_is_any(store):
    store.write("key", b"0123456789")
    assert store.read("key", (0, 1)) == b"0"
    assert store.read("key", (3, 7)) == b"3456"
    assert store.read("key", (7, 100)) == b"789"
    assert store.read("key", (10, 20)) == b""
    assert store.read("key", (4, 4)) == b""
    store.write("empty", b"")
    assert store.read("empty", (0, 5)) == b""
    for nothing in ((0, 1), (0, 0)):
        with pytest.raises(NotFound):
            store.read("missing", nothing)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_odd_key_is_kept_letter_by_letter(store, folder, key):
    store.write(key, key.encode())
    assert store.read(key) == key.encode()
    assert [found.key for found in store.list()] == [key]
    assert store.download(key, str(folder / "file")) == digest(key.encode())
    store.upload(str(folder / "file"), f"again/{key}")
    assert [found.key for found in store.list("again/")] == [f"again/{key}"]
    store.delete([key])
    assert store.head(key) is None


NO_PATHS = ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\0b"]


@pytest.mark.parametrize("key", [*NO_PATHS, "a\nb", ".estimator-0123456789abcdef.part", "é" * 600])
def test_a_key_that_not_every_store_can_hold_is_written_to_none(store, key):
    for attempt in (lambda: store.write(key, b""), lambda: store.delete([key])):
        with pytest.raises(InvalidLocation):
            attempt()


@pytest.mark.parametrize("key", NO_PATHS)
def test_a_key_that_is_no_path_inside_the_root_is_read_from_none(store, key):
    for attempt in (lambda: store.read(key), lambda: store.head(key)):
        with pytest.raises(InvalidLocation):
            attempt()


def test_delete_takes_what_is_there_and_does_not_mind_what_is_not(store):
    store.write("a/b/c", b"1")
    store.write("a/d", b"2")
    store.delete(["a/b/c", "missing", "a/missing", "nowhere/deep"])
    assert [found.key for found in store.list()] == ["a/d"]
    store.delete([])
    store.delete(["a/d"])
    assert list(store.list()) == []


# Listings.


def test_a_listing_has_every_key_once_in_order_beyond_one_page(many):
    uri, keys = many
    assert [found.key for found in open_store(uri).list()] == keys
    assert [found.key for found in open_store(uri).list("0100")] == [key for key in keys if key.startswith("0100")]


def test_more_keys_are_deleted_than_one_request_takes(store):
    store.write("a", b"1")
    store.write("z", b"1")
    store.delete(["a", *(f"{number}" for number in range(2_100)), "z"])
    assert list(store.list()) == []


def test_a_listing_is_in_the_order_of_utf8_and_finds_prefixes_letter_by_letter(store):
    keys = ["a", "a-b", "a.b", "a0", "aa/x", "ab/c", "b/a/x", "b/a-x", "b/a", "é", "z", "\uff5e", "\U0001f600"]
    keys.remove("b/a")  # a folder cannot be a file too
    keys.remove("a")
    keys += ["a/b", "a/b.c"]
    for key in keys:
        store.write(key, b"x")
    listed = [found.key for found in store.list()]
    assert listed == sorted(keys, key=str.encode)
    for prefix in ("a", "a/", "a/b", "b/a", "b/a/", "aa", "é", "nothing", "\U0001f600", "b"):
        assert [found.key for found in store.list(prefix)] == [key for key in listed if key.startswith(prefix)]


def test_the_root_of_a_store_is_a_folder_not_the_beginning_of_a_name(uri):
    open_store(uri).write("in", b"")
    open_store(f"{uri}-not").write("out", b"")
    assert [found.key for found in open_store(uri).list()] == ["in"]
    assert open_store(f"{uri}/in").head("x") is None


def test_the_folder_markers_that_consoles_make_are_not_objects(kind, server, store, uri):
    store.write("folder/a", b"1")
    if server is None:
        Path(store.root, "folder", "empty").mkdir()
    else:
        _, _, bucket, root = uri.split("/")
        for key in ("folder/", "folder/empty/"):
            server.client().put_object(Bucket=bucket, Key=f"{root}/{key}", Body=b"")
    assert [found.key for found in store.list()] == ["folder/a"]


# The condition.


def test_a_write_if_absent_writes_only_where_nothing_is(store):
    etag = store.write("key", b"first", if_absent=True)
    with pytest.raises(Conflict, match=f"{store.uri}/key .*nothing was written"):
        store.write("key", b"second", if_absent=True)
    assert store.read("key") == b"first"
    assert store.head("key").etag == etag


def test_of_sixteen_writers_at_once_exactly_one_wins(store):
    for round_ in range(4):
        key = f"key-{round_}"
        start = threading.Barrier(WRITERS)

        def write(number: int, key=key, start=start) -> bool:
            start.wait()
            try:
                store.write(key, b"writer %d" % number, if_absent=True)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(write, range(WRITERS)))
        assert sum(won) == 1
        assert store.read(key) == b"writer %d" % won.index(True)


def test_trying_the_condition_leaves_nothing_behind(store):
    store.write("key", b"1", if_absent=True)
    assert [found.key for found in store.list()] == ["key"]


# Files.


@pytest.mark.parametrize("size", [1, 8 * MIB + 1, ELSEWHERE.part + 1, 2 * ELSEWHERE.part + 1, 64 * MIB + 1])
def test_a_file_of_any_size_goes_up_and_down_byte_for_byte(store, folder, size):
    data = random_file(folder / "file", size)
    assert store.upload(str(folder / "file"), "key") == digest(data)
    assert store.head("key").size == size
    assert store.download("key", str(folder / "sub" / "copy")) == digest(data)
    assert (folder / "sub" / "copy").read_bytes() == data
    assert store.read("key", (size - 1, size)) == data[-1:]


def test_a_download_replaces_what_was_at_the_path(store, folder):
    (folder / "file").write_bytes(b"old and longer")
    store.write("key", b"new")
    store.download("key", str(folder / "file"))
    assert files_below(folder) == {"file": b"new"}


@pytest.mark.parametrize("size", [1000, 20 * MIB, 2 * ELSEWHERE.part + MIB])
def test_a_file_that_changes_under_its_upload_is_not_published(store, folder, monkeypatch, size):
    path = folder / "file"
    random_file(path, size)
    read = UploadSource.read_into

    def read_and_change(self, into, offset):
        read(self, into, offset)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(UploadSource, "read_into", read_and_change)
    with pytest.raises(SourceChanged, match="file changed during the upload"):
        store.upload(str(path), "key")
    assert store.head("key") is None
    assert list(store.list()) == []


@pytest.mark.parametrize("size", [1000, ELSEWHERE.part + MIB])
def test_a_version_that_was_overwritten_is_not_downloaded(store, folder, size):
    random_file(folder / "file", size)
    store.upload(str(folder / "file"), "key")
    seen = store.head("key")
    random_file(folder / "file", size)
    store.upload(str(folder / "file"), "key")
    with pytest.raises(SourceChanged):
        store.download(seen, str(folder / "copy"))
    assert set(files_below(folder)) == {"file"}


def test_a_missing_file_is_said_to_be_missing(store, folder):
    with pytest.raises(NotFound, match=f"{folder}/none does not exist"):
        store.upload(str(folder / "none"), "key")


# Many files.


def test_many_files_go_up_and_down_with_their_digests_in_order(store, folder):
    (folder / "up").mkdir()
    contents = {f"{number:03d}": os.urandom(number * 37) for number in range(120)}
    contents["large"] = os.urandom(2 * ELSEWHERE.part + MIB)
    for name, data in contents.items():
        (folder / "up" / name).write_bytes(data)
    told: list[tuple[int, int]] = []
    up = [(str(folder / "up" / name), f"d{name[-1]}/{name}") for name in contents]
    assert store.upload_many(iter(up)) == [digest(data) for data in contents.values()]
    # A listing is passed on as it comes.
    down = ((found, str(folder / "down" / found.key)) for found in store.list())
    by_key = dict(zip([key for _, key in up], contents.values(), strict=True))
    digests = store.download_many(down, progress=lambda size, objects: told.append((size, objects)))
    assert digests == [digest(by_key[key]) for key in sorted(by_key)]
    assert told[-1] == (sum(map(len, contents.values())), len(contents))
    assert files_below(folder / "down") == by_key


def test_the_first_failure_ends_the_others_and_leaves_whole_files_only(store, folder):
    for number in range(40):
        store.write(f"{number:02d}", b"x" * 1000)
    items = [(f"{number:02d}", str(folder / f"{number:02d}")) for number in range(40)]
    with pytest.raises(NotFound, match="missing"):
        store.download_many([*items[:20], ("missing", str(folder / "missing")), *items[20:]])
    assert set(files_below(folder).values()) <= {b"x" * 1000}
    assert not (folder / "missing").exists()


def test_what_the_iterator_or_the_callback_raises_ends_the_transfer(store, folder):
    store.write("key", b"1")

    def items():
        yield "key", str(folder / "one")
        raise KeyError("mine")

    def told(size, objects):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        store.download_many(items())
    with pytest.raises(KeyError, match="mine"):
        store.download_many([("key", str(folder / "one"))], progress=told)
    assert store.download_many([]) == []


def test_a_store_is_used_from_several_threads(store, folder):
    def use(number: int) -> bytes:
        store.write(f"{number}", b"%d" % number)
        store.download(f"{number}", str(folder / f"{number}"))
        return store.read(f"{number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(64))) == [b"%d" % number for number in range(64)]
    assert len(files_below(folder)) == 64


def test_a_bucket_or_a_root_that_is_not_there(kind, uri, folder):
    if kind == "file":
        store = open_store(f"{uri}/nowhere")
        assert list(store.list()) == []
        assert store.head("a") is None
        store.delete(["a"])
        return
    store = open_store("s3://no-such-bucket/root")
    for attempt in (
        lambda: list(store.list()),
        lambda: store.head("a"),
        lambda: store.read("a"),
        lambda: store.write("a", b""),
        lambda: store.write("a", b"", if_absent=True),
        lambda: store.download("a", str(folder / "a")),
        lambda: store.upload(__file__, "a"),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(NoSuchBucket, match="'no-such-bucket', which does not exist"):
            attempt()
    assert files_below(folder) == {}
