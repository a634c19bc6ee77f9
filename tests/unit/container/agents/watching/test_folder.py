import ctypes
import errno
import mmap
import os
import select
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.agents.watching import folder as folders
from estimator_container.agents.watching.state import Stamp


def until_news(watched):
    assert select.select([watched.folder.fileno()], [], [], 20.0)[0], "no news came"
    return watched.folder.changed()


def test_a_state_holds_all_files_folders_and_links(watched):
    watched.write("step-1/model", "abc")
    watched.write("empty")
    (watched.path / "none").mkdir()
    (watched.path / "latest").symlink_to("step-1")
    state = watched.state()
    assert {path: stamp.size for path, stamp in state.files.items()} == {"step-1/model": 3, "empty": 1}
    assert set(state.folders) == {"step-1", "none"}
    assert state.links == {"latest": "step-1"}
    assert state.unsettled == set()
    assert state.files["empty"] == Stamp.from_status((watched.path / "empty").stat())


def test_only_files_folders_and_links_count(watched):
    os.mkfifo(watched.path / "pipe")
    assert watched.state() == folders.FolderState()


CHANGES = {
    "a file that is closed": lambda path: (path / "new").write_text("x"),
    "a rename into place": lambda path: (path / "draft").rename(path / "final"),
    "a rename from outside": lambda path: (path.parent / "outside").rename(path / "inside"),
    "a rename to the outside": lambda path: (path / "draft").rename(path.parent / "gone"),
    "a rewrite in place": lambda path: (path / "draft").write_text("y"),
    "an unlink": lambda path: (path / "draft").unlink(),
    "a new folder": lambda path: (path / "folder").mkdir(),
    "a link": lambda path: (path / "link").symlink_to("draft"),
    "a change in a folder": lambda path: (path / "step" / "model").write_text("y"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_news_and_changes_the_state(watched, leases, change):
    watched.write("draft")
    watched.write("step/model")
    (watched.path.parent / "outside").write_text("z")
    before = watched.state()
    assert not watched.folder.changed()
    change(watched.path)
    assert until_news(watched)
    assert watched.state(before.files) != before


def test_reading_is_no_news(watched, leases):
    watched.write("model")
    watched.state()
    (watched.path / "model").read_bytes()
    list(watched.path.iterdir())
    assert not watched.folder.changed()


def test_a_file_beside_the_folder_is_no_news(watched):
    watched.state()
    (watched.path.parent / "other").write_text("x")
    assert not watched.folder.changed()


def test_what_is_made_while_its_folder_is_not_watched_yet_is_found(watched):
    watched.state()
    watched.write("a/b/c/d/model")
    assert until_news(watched)
    assert list(watched.state().files) == ["a/b/c/d/model"]
    watched.write("a/b/c/d/other")
    assert until_news(watched)


def test_a_folder_that_takes_a_new_name_is_followed(watched):
    watched.write(".step/model")
    watched.state()
    (watched.path / ".step").rename(watched.path / "step")
    assert list(watched.state().files) == ["step/model"]
    watched.write("step/model", "longer")
    assert until_news(watched)
    assert watched.state().files["step/model"].size == 6


def test_the_whole_folder_may_go_and_come_back(watched):
    watched.write("model")
    watched.state()
    shutil.rmtree(watched.path)
    assert watched.state() == folders.FolderState()
    watched.path.mkdir()
    assert until_news(watched)
    watched.write("model")
    assert list(watched.state().files) == ["model"]
    watched.write("model", "again")
    assert until_news(watched)


def test_a_file_that_is_open_for_writing_is_unsettled_until_it_is_closed(watched, leases):
    watched.state()
    with (watched.path / "model").open("wb", buffering=0) as file:
        file.write(b"half")
        assert watched.folder.is_being_written("model")
        state = watched.state()
        assert (list(state.files), state.unsettled) == ([], {"model"})
        file.write(b"whole")
    assert until_news(watched)
    assert not watched.folder.is_being_written("model")
    assert list(watched.state().files) == ["model"]


def test_of_open_files_those_are_told_apart_that_had_been_whole(watched, leases):
    watched.state()
    watched.write("twice")
    watched.write("gone")
    assert until_news(watched)
    (watched.path / "gone").unlink()
    assert until_news(watched)
    with (watched.path / "twice").open("w") as twice, (watched.path / "gone").open("w") as gone:
        for file in (twice, gone):
            file.write("half")
            file.flush()
        state = watched.state()
        assert (state.unsettled, state.reopened) == ({"twice", "gone"}, {"twice"})


def test_what_was_there_before_anybody_watched_had_been_whole(watched, leases):
    watched.write("closed")
    with (watched.path / "open").open("w") as first:
        watched.folder.watch()
        with (watched.path / "closed").open("w") as second:
            for file in (first, second):
                file.write("half")
                file.flush()
            assert watched.state().reopened == {"closed", "open"}


def test_a_rewrite_in_place_is_unsettled(watched, leases):
    watched.write("model")
    known = watched.state().files
    with (watched.path / "model").open("r+b", buffering=0) as file:
        # Opened, and nothing written yet: it is still what it was.
        assert watched.state(known).files == known
        file.write(b"y")
        assert watched.state(known).unsettled == {"model"}
    assert watched.state(known).files["model"] != known["model"]


def test_a_file_that_is_mapped_is_being_written(watched):
    path = watched.write("model", "x" * 100)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    with mapped:
        assert watched.folder.is_being_written("model")
    assert not watched.folder.is_being_written("model")


def test_a_file_of_the_same_size_and_time_is_another(watched):
    """As `tar` and `cp -p` make them, for whom the time of every file is the same, in a file that stays."""
    path = watched.write("model", "one")
    os.utime(path, ns=(0, 0))
    before = watched.state().files["model"]
    path.write_text("two")
    os.utime(path, ns=(0, 0))
    after = watched.state().files["model"]
    assert replace(after, ctime_ns=0) == replace(before, ctime_ns=0)
    assert after != before
    assert not watched.folder.is_as_it_was("model", before)
    assert watched.folder.is_as_it_was("model", after)


def test_unpacked_files_are_new(watched):
    archive = watched.path.parent / "archive.tar"
    states = []
    for content in ("one", "two"):
        path = watched.write("model", content)
        os.utime(path, ns=(0, 0))
        with tarfile.open(archive, "w") as tar:
            tar.add(path, "model")
        with tarfile.open(archive) as tar:
            tar.extract("model", watched.path)
        states.append(watched.state().files["model"])
    assert states[0] != states[1]


def test_a_file_that_is_gone_is_not_as_it_was(watched):
    path = watched.write("model")
    stamp = watched.state().files["model"]
    path.unlink()
    assert not watched.folder.is_as_it_was("model", stamp)


def test_a_folder_that_does_not_hold_still_has_no_state(watched, monkeypatch):
    watched.write("model")
    scan = watched.folder._scan

    def scan_while_somebody_writes(known):
        found = scan(known)
        watched.write("other")
        return found

    monkeypatch.setattr(watched.folder, "_scan", scan_while_somebody_writes)
    assert watched.state(seconds=0.05) is None


def test_a_state_is_of_one_moment(watched, monkeypatch):
    """What is moved from a folder that was not looked at yet into one that was is not lost."""
    watched.write("a/model")
    (watched.path / "b").mkdir()
    watched.state()
    listed = []
    watch = watched.folder._watch

    def move_after_the_first(folder):
        listed.append(folder)
        if len(listed) == 3:  # one of the two has been listed
            here, there = ("a", "b") if listed[1] == "b" else ("b", "a")
            if (watched.path / here / "model").exists():
                (watched.path / here / "model").rename(watched.path / there / "model")
        return watch(folder)

    monkeypatch.setattr(watched.folder, "_watch", move_after_the_first)
    state = watched.state()
    assert len(listed) >= 3
    assert len(state.files) == 1


def test_many_files_are_one_state(watched):
    for number in range(2000):
        watched.write(f"{number % 20}/{number}", str(number))
    state = watched.state()
    assert len(state.files) == 2000
    assert not watched.folder.changed()


def queue_limit():
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


def test_after_an_overflow_of_the_queue_nothing_is_missed_and_nothing_believed(watched):
    watched.write("step/model")
    known = watched.state().files
    watched.write(".next")
    (watched.path / ".next").rename(watched.path / "next")
    assert watched.folder.changed()
    assert watched.folder.was_moved_here("next", watched.state().files["next"])
    for _ in range(queue_limit() // 4 + 10):  # each of the two is two events, and no two alike follow each other
        (watched.path / "step").rename(watched.path / "pets")
        (watched.path / "pets").rename(watched.path / "step")
    watched.write("last")
    assert watched.folder.changed()
    assert not watched.folder.was_moved_here("next", watched.state().files["next"])
    assert set(watched.state(known).files) == {"next", "last", "step/model"}
    watched.write("later")
    assert until_news(watched)


def test_who_has_closed_a_file_while_the_queue_was_full_is_not_waited_for_any_longer(leases, watched):
    watched.state()
    (watched.path / "step").mkdir()
    with (watched.path / "model").open("w") as file:
        file.write("x")
        file.flush()
        assert watched.folder.changed() and "model" in watched.state().unsettled
        for _ in range(queue_limit() // 4 + 10):  # as above
            (watched.path / "step").rename(watched.path / "pets")
            (watched.path / "pets").rename(watched.path / "step")
    assert watched.folder.changed()
    assert set(watched.state().files) == {"model"}


def test_a_move_is_trusted_until_the_file_is_written_again(watched):
    watched.state()
    watched.write(".model")
    (watched.path / ".model").rename(watched.path / "model")
    state = watched.state()
    assert watched.folder.was_moved_here("model", state.files["model"])
    watched.write("model", "y")
    state = watched.state()
    assert not watched.folder.was_moved_here("model", state.files["model"])
    watched.write(".model")
    (watched.path / ".model").rename(watched.path / "model")
    state = watched.state()
    assert watched.folder.was_moved_here("model", state.files["model"])
    watched.folder.forget_moves()
    assert not watched.folder.was_moved_here("model", state.files["model"])


def test_a_move_of_a_folder_is_trusted_for_what_was_in_it(watched):
    watched.state()
    watched.write(".step/part/model")
    (watched.path / ".step").rename(watched.path / "step")
    # The folder is not watched yet, so no event tells of this.
    watched.write("step/part/late")
    os.utime(watched.path / "step/part/late", ns=(0, 0))
    state = watched.state()
    late, model = state.files["step/part/late"], state.files["step/part/model"]
    assert watched.folder.was_moved_here("step/part/model", model)
    assert not watched.folder.was_moved_here("step/part/late", replace(late, ctime_ns=late.ctime_ns + 10**7))
    watched.write("step/part/model", "y")
    assert not watched.folder.was_moved_here("step/part/model", watched.state().files["step/part/model"])


def test_a_link_by_the_name_that_a_container_has_for_the_folder_is_relative(tmp_path):
    folder = folders.WatchedFolder(str(tmp_path), "/opt/ml/checkpoints")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "latest").symlink_to("/opt/ml/checkpoints/step-1")
    (tmp_path / "other").symlink_to("/opt/ml/checkpoints-of-others")
    assert folder.state({}, 20.0).links == {"deep/latest": "../step-1", "other": "/opt/ml/checkpoints-of-others"}
    folder.close()


def test_a_link_into_the_folder_is_relative(watched):
    watched.write("step-1/model")
    (watched.path / "latest").symlink_to(watched.path / "step-1")
    (watched.path / "step-1" / "same").symlink_to(watched.path / "step-1" / "model")
    (watched.path / "out").symlink_to("/etc")
    assert watched.state().links == {"latest": "step-1", "step-1/same": "model", "out": "/etc"}


def test_a_file_of_somebody_else_has_every_write_listened_to(watched, monkeypatch):
    """Only the owner of a file can have a lease on it."""
    monkeypatch.setattr(folders, "_LISTEN_SECONDS", 3600.0)
    watched.write("mine")
    watched.state()

    def refused(path):
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(folders, "has_writer", refused)
    with (watched.path / "theirs").open("wb", buffering=0) as file:
        assert until_news(watched)
        file.write(b"first")
        # It was open before anybody listened: only the next write tells.
        wait = watched.folder.wait

        def wait_while_somebody_writes(seconds):
            if seconds <= 2 * folders.TICK_NS / 1e9:
                return wait(seconds)
            file.write(b"more")
            heard = wait(seconds)
            watched.folder._complete_at = 0.0
            return heard

        monkeypatch.setattr(watched.folder, "wait", wait_while_somebody_writes)
        state = watched.state()
        assert (set(state.files), state.unsettled) == ({"mine"}, {"theirs"})
    assert set(watched.state().files) == {"mine", "theirs"}


def test_a_folder_that_cannot_be_watched_is_an_error_that_says_so(watched, monkeypatch):
    watched.write("step/model")

    def refused(*arguments):
        ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(watched.folder._inotify._libc, "inotify_add_watch", refused)
    with pytest.raises(OSError, match="max_user_watches"):
        watched.state()


def test_a_path_that_no_program_can_open_is_an_error_that_names_its_beginning(watched, monkeypatch):
    monkeypatch.chdir(watched.path)
    for _ in range(20):
        os.mkdir("d" * 250)  # noqa: PTH102 - below a path that is too long for one
        os.chdir("d" * 250)
    with pytest.raises(OSError, match=rf"^'d{{60}}'… in {watched.path} is too long for a path: rename or remove it$"):
        watched.state()
