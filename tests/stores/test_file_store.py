"""What is particular to a folder: it can be looked at, and its disk can be full."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from estimator_container.storage import InvalidLocation, NoSpace, NotFound, StorageError, open_store
from estimator_container.storage.landing import LEFT_SECONDS, Landing

FULL = """
import resource, sys
from estimator_container.storage import NoSpace, open_store
store = open_store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    store.download("key", sys.argv[2])
except NoSpace as error:
    print(error)
"""


@pytest.fixture
def kind():
    return "file"


def test_an_unfinished_file_is_in_no_listing(store, tmp_path):
    store.write("folder/key", b"1")
    with Landing(str(tmp_path / "store" / "folder" / "other")) as landing:
        landing.write(b"half")
        assert [found.key for found in store.list()] == ["folder/key"]
    assert [path.name for path in (tmp_path / "store" / "folder").iterdir()] == ["key"]


KILLED = """
import os, sys
from estimator_container.storage.landing import Landing
with Landing(sys.argv[1], durable=True) as landing:
    landing.write(b"half")
    os.kill(os.getpid(), 9)
"""


def unfinished(folder, age):
    """The names of unfinished files below a folder, once those that are old enough are removed."""
    now = time.time()
    for path in folder.rglob(".estimator-*.part"):
        os.utime(path, (now - age, now - age))
    open_store(f"file://{folder}").remove_unfinished("data/")
    return [path.name for path in folder.rglob(".estimator-*.part")]


def test_what_a_writer_that_was_killed_has_left_is_removed_once_it_is_old_enough(store, tmp_path):
    root = tmp_path / "store"
    store.write("data/1/key", b"1")
    for key in ("data/1/other", "data/2/key", "elsewhere/key"):
        killed = subprocess.run([sys.executable, "-c", KILLED, root / key], check=False)
        assert killed.returncode == -9
    assert len(unfinished(root, age=LEFT_SECONDS / 2)) == 3
    assert len(unfinished(root, age=LEFT_SECONDS * 2)) == 1
    assert sorted(path.name for path in root.iterdir()) == ["data", "elsewhere"]
    assert [path.name for path in root.rglob("data/*")] == ["1"]  # the other folder was left empty
    assert store.read("data/1/key") == b"1"


def test_a_delete_leaves_no_empty_folder(store, tmp_path):
    store.write("a/b/c", b"1")
    store.delete(["a/b/c"])
    assert list((tmp_path / "store").iterdir()) == []


def test_a_delete_goes_on_above_a_folder_that_somebody_else_has_removed(store, tmp_path):
    (tmp_path / "store" / "a").mkdir(parents=True)
    store.delete(["a/b/c"])
    assert list((tmp_path / "store").iterdir()) == []


def test_a_key_below_another_key_is_an_error_of_the_folder(store):
    store.write("a", b"1")
    with pytest.raises(StorageError, match="/store/a/b cannot be written"):
        store.write("a/b", b"1")
    assert store.read("a") == b"1"


def test_links_are_followed_and_a_loop_of_links_ends(store, tmp_path):
    store.write("data/key", b"1")
    (tmp_path / "store" / "link").symlink_to("data")
    (tmp_path / "store" / "data" / "up").symlink_to("..")
    assert [found.key for found in store.list()] == ["data/key", "link/key"]


@pytest.mark.parametrize("target", ["nowhere", "broken"])
def test_a_link_that_leads_to_nothing_is_an_error_where_it_would_be_listed(store, tmp_path, target):
    store.write("data/key", b"1")
    (tmp_path / "store" / "other").mkdir()
    (tmp_path / "store" / "other" / "broken").symlink_to(target)
    assert [found.key for found in store.list("data/")] == ["data/key"]
    with pytest.raises(StorageError, match=f"/other/broken is a link to {target}, which does not exist"):
        list(store.list())


def test_what_is_neither_a_file_nor_a_folder_is_no_object_and_is_not_waited_for(store, tmp_path):
    store.write("key", b"1")
    os.mkfifo(tmp_path / "store" / "pipe")
    assert [found.key for found in store.list()] == ["key"]
    assert store.head("pipe") is None
    for name in ("pipe", ".", "x" * 300):
        with pytest.raises((NotFound, InvalidLocation)):
            store.read(name)


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe", b"\x1b[31m", b".estimator-notes", "é".encode() * 127])
def test_whatever_a_file_is_called_that_somebody_else_made_it_is_read(store, tmp_path, folder, name):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / os.fsdecode(name)).write_bytes(b"1")
    (found,) = store.list()
    assert os.fsencode(found.key) == name
    assert store.read(found.key) == b"1" and store.head(found.key) == found
    assert store.download(found, str(folder / "copy")).size == 1


def test_a_tree_that_somebody_else_made_is_read_as_it_is(store, tmp_path, folder):
    (tmp_path / "store" / "sub").mkdir(parents=True)
    (tmp_path / "store" / "sub" / "file").write_bytes(b"1")
    assert [(found.key, found.size) for found in store.list()] == [("sub/file", 1)]
    assert store.download(next(store.list()), str(folder / "copy")).size == 1


@pytest.mark.parametrize("server_kind", ["file", "ceph"])
def test_a_full_disk_is_said_with_the_path_and_leaves_no_file(server_kind, request, tmp_path, folder, monkeypatch):
    if server_kind == "file":
        uri = f"file://{tmp_path / 'store'}"
    else:
        for name, value in request.getfixturevalue("ceph_server").environment().items():
            monkeypatch.setenv(name, value)
        uri = "s3://stores/full"
    (tmp_path / "large").write_bytes(bytes(20 << 20))
    open_store(uri).upload(str(tmp_path / "large"), "key")
    command = [sys.executable, "-c", FULL, uri, str(folder / "copy")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"no space is left for {folder / 'copy'} (")
    assert list(folder.iterdir()) == []
    assert issubclass(NoSpace, StorageError)


def test_too_little_space_is_found_before_the_transfer(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], check=True)
    try:
        with Landing(str(tmp_path / "fits")) as landing:
            landing.set_size(1 << 19)
        with Landing(str(tmp_path / "large")) as landing, pytest.raises(NoSpace, match="no space is left for .*large"):
            landing.set_size(1 << 21)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
