from __future__ import annotations

import errno
import os
from collections import deque
from pathlib import Path

import pytest

from estimator_sdk.backends.ssh.on_host.copying import trees
from estimator_sdk.backends.ssh.on_host.copying.trees import PIECE, Outbox, TreeLanding, piece, tree


def test_a_tree_arrives_as_it_is(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "model" / "empty").mkdir(parents=True)
    (source / "model" / "large").write_bytes(os.urandom(3 * PIECE + 7))
    (source / "model" / "program").write_text("#!/bin/sh\n")
    (source / "model" / "program").chmod(0o755)
    (source / "model" / "link").symlink_to("large")
    (source / "model" / "left").mkdir()
    (source / "model" / "left" / "out").touch()
    os.mkfifo(source / "model" / "pipe")
    target.mkdir()
    for item in tree(str(source), ["model", "none"], without=["model/left"]):
        TreeLanding(str(target)).take(*item)
    assert sorted(path.name for path in (target / "model").iterdir()) == ["empty", "large", "link", "program"]
    assert (target / "model" / "large").read_bytes() == (source / "model" / "large").read_bytes()
    assert os.access(target / "model" / "program", os.X_OK)
    assert (target / "model" / "link").readlink().name == "large"


def test_a_small_file_is_never_met_before_it_is_whole(tmp_path):
    """The supervisor may look for a verdict between any two messages, and others at any time."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "verdict.json").write_text("{}")
    (item,) = tree(str(tmp_path / "there"), ["verdict.json"])
    TreeLanding(str(tmp_path / "here")).take(*item)
    assert (tmp_path / "here" / "verdict.json").read_text() == "{}"


def test_a_file_without_room_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "there").mkdir()
    (here := tmp_path / "here").mkdir()
    for folder in ("there", "here"):
        (tmp_path / folder / "file").write_text(folder)
    (item,) = tree(str(tmp_path / "there"), ["file"])
    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr(os, "pwrite", full)
        TreeLanding(str(here)).take(*item)
    assert {path.name: path.read_text() for path in here.iterdir()} == {"file": "here"}
    TreeLanding(str(here)).take(*item)
    assert {path.name: path.read_text() for path in here.iterdir()} == {"file": "there"}


@pytest.mark.parametrize("was", ["folder", "link"])
def test_a_file_takes_the_place_of_what_has_its_name(tmp_path, was):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("new")
    place = tmp_path / "here" / "file"
    if was == "folder":
        (place / "below").mkdir(parents=True)
    else:
        place.parent.mkdir()
        (tmp_path / "out").write_text("kept")
        place.symlink_to(tmp_path / "out")
    (item,) = tree(str(tmp_path / "there"), ["file"])
    TreeLanding(str(place.parent)).take(*item)
    assert place.read_text() == "new" and not place.is_symlink()
    assert was == "folder" or (tmp_path / "out").read_text() == "kept"


def test_what_leads_into_a_folder_of_both_ends_is_not_copied(tmp_path):
    for name in ("source/data", "target", "common/channel", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "common" / "channel" / "one").write_text("1")
    (tmp_path / "other" / "two").write_text("2")
    (tmp_path / "source" / "data" / "channel").symlink_to(tmp_path / "common" / "channel")
    (tmp_path / "source" / "data" / "copied").symlink_to(tmp_path / "other")
    for item in tree(str(tmp_path / "source"), ["data"], follow=True, common=str(tmp_path / "common")):
        TreeLanding(str(tmp_path / "target")).take(*item)
    arrived = tmp_path / "target" / "data"
    assert (arrived / "channel").readlink() == tmp_path / "common" / "channel"
    assert not (arrived / "copied").is_symlink() and (arrived / "copied" / "two").read_text() == "2"


def test_a_link_that_names_a_file_of_the_folder_leads_there_where_it_arrives(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    (source / "best").write_text("weights")
    (source / "deep" / "inside").symlink_to(source / "best")
    (source / "deep" / "outside").symlink_to("/etc/hostname")
    target.mkdir()
    for item in tree(str(source), ["best", "deep"]):
        TreeLanding(str(target)).take(*item)
    assert (target / "deep" / "inside").resolve() == (target / "best").resolve()
    assert str((target / "deep" / "outside").readlink()) == "/etc/hostname"


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "", ".", "a//b"])
def test_nothing_is_written_outside_of_the_folder(tmp_path, name):
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError):
        TreeLanding(str(tmp_path / "in")).take(*piece(name, 0, b"x"))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("kept")
    landing = TreeLanding(str(tmp_path / "in"))
    landing.take("link", "folder", str(tmp_path / "out"))
    landing.take("link", "file", str(tmp_path / "out" / "file"))
    with pytest.raises(ValueError):
        landing.take(*piece("folder/file", 0, b"x"))
    with pytest.raises(OSError):
        landing.take(*piece("file", 0, b"x"))
    assert (tmp_path / "out" / "file").read_text() == "kept"


def test_an_outbox_sends_no_more_than_is_taken_and_tells_once_all_is():
    sent, told = deque(), []
    outbox = Outbox(lambda *item: sent.append(item))
    outbox.put((("data", str(number)) for number in range(100)), lambda: told.append("all"))
    outbox.put(iter([("last",)]))
    assert 0 < len(sent) < 50 and told == []
    taken = []
    while sent:
        taken.append(sent.popleft())
        assert told == [] or len(taken) >= 100
        outbox.taken()
    assert taken == [*(("data", str(number)) for number in range(100)), ("last",)]
    assert told == ["all"]


def test_what_cannot_be_read_is_named_and_all_else_arrives(tmp_path, monkeypatch):
    (there := tmp_path / "there").mkdir()
    for name in ("a", "b", "c"):
        (there / name).write_text(name)
    (there / "long").mkdir()
    monkeypatch.chdir(there / "long")
    for _ in range(20):  # root may read everything, but not by a path of over 4096 bytes
        Path("x" * 250).mkdir()
        os.chdir("x" * 250)
    real = open

    def refused(path, *arguments):
        if str(path).endswith("/b"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(trees, "open", refused, raising=False)
    landing, unreadable = TreeLanding(str(tmp_path / "here")), []
    for item in tree(str(there), ("a", "b", "c", "long"), unreadable=unreadable):
        landing.take(*item)
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["a", "c", "long"]
    assert unreadable[0] == "b: Permission denied"
    assert len(unreadable) == 2 and unreadable[1].endswith(": File name too long")
    with pytest.raises(PermissionError):
        list(tree(str(there), ("b",)))
