import errno
import os
from hashlib import sha256
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints import appended, publisher
from estimator_container.agents.checkpoints.format import CLAIMS, DATA, SNAPSHOTS, Claim, File, Manifest
from estimator_container.agents.checkpoints.publisher import Overtaken
from estimator_container.agents.checkpoints.restore import claim, read_manifest, restore, snapshots
from estimator_container.agents.watching.state import Stamp
from estimator_container.storage import SourceChanged, StoreUnavailable
from estimator_container.storage.location import unfinished_name


def keys(store, prefix):
    return [each.key for each in store.list(prefix)]


def begin(attempt, store):
    return attempt.begin(restore(store, str(attempt.watched.path)))


def test_a_snapshot_is_what_the_folder_holds(store, new_attempt):
    attempt = begin(new_attempt(job="digits"), store)
    (attempt.watched.path / "empty").mkdir()
    (attempt.watched.path / "latest").symlink_to("model")
    path = attempt.watched.write("model", "abc")
    path.chmod(0o640)
    published = attempt.publish()
    manifest = Manifest.from_bytes(store.read(published.manifest.name.key))
    assert manifest == published.manifest
    assert (manifest.job, manifest.folders, manifest.links) == ("digits", ("empty",), (("latest", "model"),))
    (file,) = manifest.files
    assert (file.path, file.size, file.mode, file.mtime_ns) == ("model", 3, 0o640, path.stat().st_mtime_ns)
    assert store.read(file.object) == b"abc"
    assert published.uploaded_size == 3


def test_only_what_is_new_is_sent(store, new_attempt):
    attempt = begin(new_attempt(), store)
    first = attempt.publish(one="1", two="22")
    second = attempt.publish(two="333")
    assert second.uploaded_size == 3
    assert [file.object for file in second.manifest.files if file.path == "one"] == [
        file.object for file in first.manifest.files if file.path == "one"
    ]


def test_what_was_restored_is_not_sent_again(store, new_attempt):
    begin(new_attempt(), store).publish(one="1", two="22")
    attempt = begin(new_attempt(), store)
    assert not attempt.publisher.is_news(attempt.watched.state())
    assert attempt.publish(three="333").uploaded_size == 3


def test_a_deletion_alone_is_no_news_and_takes_no_snapshot_away(store, new_attempt):
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1", two="2")
    for path in list(attempt.watched.path.iterdir()):
        path.unlink()
    assert not attempt.publisher.is_news(attempt.watched.state())
    attempt.publisher.clean_up()
    target = attempt.watched.path.parent / "restored"
    assert restore(store, str(target)).files == 2
    # With the next file it is told too.
    assert [file.path for file in attempt.publish(three="3").manifest.files] == ["three"]


def test_what_an_attempt_that_was_killed_has_half_sent_does_not_stay_in_a_folder(store, new_attempt, tmp_path):
    attempt = begin(new_attempt(), store)
    half = tmp_path / "store" / DATA / "000007" / unfinished_name()
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    attempt.publish(one="1")
    attempt.publisher.clean_up()
    assert not half.parent.exists()


def test_a_new_link_is_news_once_there_is_a_snapshot(store, new_attempt):
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1")
    (attempt.watched.path / "latest").symlink_to("one")
    assert attempt.publish().manifest.links == (("latest", "one"),)


def test_nothing_is_published_while_a_file_of_the_last_snapshot_is_being_written(store, new_attempt):
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1")
    with (attempt.watched.path / "one").open("w") as file:
        file.write("half")
        file.flush()
        attempt.watched.write("two")
        state = attempt.watched.state(attempt.publisher.stamps)
        assert not attempt.publisher.is_news(state)
        assert attempt.publisher.waits_for(state) == ["one"]
        assert attempt.publisher.size_of_news(state) == 1
    assert [file.path for file in attempt.publish().manifest.files] == ["one", "two"]


def test_a_new_file_that_is_open_is_left_out(store, new_attempt):
    attempt = begin(new_attempt(), store)
    with (attempt.watched.path / "log").open("w") as file:
        file.write("for good")
        file.flush()
        assert [file.path for file in attempt.publish(one="1").manifest.files] == ["one"]


# Logs: files of the last snapshot that stay open, and only grow.


def test_of_a_log_a_snapshot_holds_what_there_is(store, new_attempt):
    attempt = begin(new_attempt(), store)
    attempt.publish(log="1\n", other="o")
    with (attempt.watched.path / "log").open("a") as log:
        for number in (2, 3):
            log.write(f"{number}\n")
            log.flush()
            attempt.watched.write("model", str(number))
            state = attempt.watched.state(attempt.publisher.stamps)
            assert not attempt.publisher.is_news(state)
            assert attempt.publisher.is_news(state, ["log"])
            published = attempt.publisher.publish(state, ["log"])
            target = attempt.watched.path.parent / f"restored-{number}"
            restore(store, str(target))
            assert (target / "log").read_text() == "1\n2\n3\n"[: 2 * number]
            assert published.uploaded_size == 1 + 2 * number
        # That it has grown alone is no news until it is closed.
        log.write("4\n")
        log.flush()
        assert not attempt.publisher.is_news(attempt.watched.state(attempt.publisher.stamps), ["log"])
    assert {file.path: file.size for file in attempt.publish().manifest.files} == {"log": 8, "model": 1, "other": 1}
    assert not Path(f"{attempt.watched.path}.appended").exists()


def test_a_log_that_has_not_grown_is_not_sent_again(store, new_attempt):
    attempt = begin(new_attempt(), store)
    first = attempt.publish(log="1\n").manifest
    with (attempt.watched.path / "log").open("r+") as log:
        log.write("1\n")  # what was there, so that its time is another
        log.flush()
        attempt.watched.write("model")
        second = attempt.publisher.publish(attempt.watched.state(attempt.publisher.stamps), ["log"])
    assert second.uploaded_size == second.manifest.files[1].size
    assert second.manifest.files[0].object == first.files[0].object


@pytest.mark.parametrize(("mode", "content"), [("r+", "2"), ("w", "1\n2\n".replace("1", "3")), ("w", "1")])
def test_what_is_written_anew_is_no_log(store, new_attempt, mode, content):
    attempt = begin(new_attempt(), store)
    attempt.publish(log="1\n")
    with (attempt.watched.path / "log").open(mode) as log:
        log.write(content)
        log.flush()
        attempt.watched.write("model")
        with pytest.raises(appended.Rewritten):
            attempt.publisher.publish(attempt.watched.state(attempt.publisher.stamps), ["log"])
    assert [name.sequence for name in snapshots(store)] == [1]


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda path: (path / "new").write_text("x"),
        lambda path: (path / "known").open("r+").write("y"),
        lambda path: (path / "known").unlink(),
        lambda path: (path / "log").rename(path / "log.1"),
    ],
    ids=["a new file", "a known file written", "a known file removed", "the log moved away"],
)
def test_a_log_of_another_moment_than_the_rest_is_not_taken(store, new_attempt, monkeypatch, meanwhile):
    attempt = begin(new_attempt(), store)
    attempt.publish(log="1\n", known="x")
    with (attempt.watched.path / "log").open("a") as log:
        log.write("2\n")
        log.flush()
        attempt.watched.write("model")
        state = attempt.watched.state(attempt.publisher.stamps)
        meanwhile(attempt.watched.path)
        with pytest.raises(SourceChanged):
            attempt.publisher.publish(state, ["log"])


def test_a_log_that_is_written_while_it_is_copied_is_not_taken(store, new_attempt, monkeypatch):
    attempt = begin(new_attempt(), store)
    attempt.publish(log="1\n")
    with (attempt.watched.path / "log").open("a", buffering=1) as log:
        log.write("2\n")
        attempt.watched.write("model")
        state = attempt.watched.state(attempt.publisher.stamps)
        take = appended._take

        def while_somebody_writes(*arguments):
            log.write("3\n")
            return take(*arguments)

        monkeypatch.setattr(appended, "_take", while_somebody_writes)
        with pytest.raises(appended.StillWritten):
            attempt.publisher.publish(state, ["log"])


def test_a_log_that_is_written_without_a_pause_is_not_even_read(tmp_path, monkeypatch):
    monkeypatch.setattr(appended, "TICK_NS", 1 << 62)  # or a slow machine could find the first write long past
    before = File("log", 2, sha256(b"1\n").hexdigest(), 0o600, 0, "objects/log")
    with (tmp_path / "log").open("w", buffering=1) as log:
        log.write("1\n2\n")
        monkeypatch.setattr(appended.time, "sleep", lambda _: log.write("3\n"))
        with pytest.raises(appended.StillWritten, match="^log is being written without a pause$"):
            appended.copy_log(str(tmp_path), before, str(tmp_path / "copied"))
    assert (tmp_path / "copied").read_bytes() == b""


class Fails:
    """A store whose next calls of a method fail, before or after they have been done."""

    def __init__(self, store, method, times=1, done=False):
        self._store, self._method, self._times, self._done = store, method, times, done

    def __getattr__(self, name):
        real = getattr(self._store, name)
        if name != self._method:
            return real

        def call(*arguments, **options):
            if not self._times:
                return real(*arguments, **options)
            self._times -= 1
            if self._done:
                real(*arguments, **options)
            raise StoreUnavailable("away")

        return call


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done, and the answer lost"])
@pytest.mark.parametrize("method", ["upload_many", "write", "list"])
def test_what_was_not_published_stays_news(store, new_attempt, method, done):
    """It is not enough that the bytes are in the store: they are in no snapshot yet."""
    attempt = begin(new_attempt(), store)
    attempt.watched.write("one")
    attempt.publisher._store = Fails(store, method, done=done)
    state = attempt.watched.state(attempt.publisher.stamps)
    with pytest.raises(StoreUnavailable):
        attempt.publisher.publish(state)
    again = attempt.watched.state(attempt.publisher.stamps)
    assert attempt.publisher.is_news(again)
    assert attempt.publisher.size_of_news(again) == 1
    attempt.publisher.publish(again)
    assert not attempt.publisher.is_news(attempt.watched.state(attempt.publisher.stamps))
    assert restore(store, str(attempt.watched.path.parent / "restored")).files == 1


def test_what_was_sent_beside_a_file_that_changed_is_published(store, new_attempt):
    attempt = begin(new_attempt(), store)
    attempt.watched.write("a")
    path = attempt.watched.write("b")
    state = attempt.watched.state()
    is_as_it_was = attempt.publisher._folder.is_as_it_was
    attempt.publisher._folder.is_as_it_was = lambda name, stamp: name != "b" and is_as_it_was(name, stamp)
    with pytest.raises(SourceChanged):
        attempt.publisher.publish(state)
    path.unlink()
    attempt.publisher._folder.is_as_it_was = is_as_it_was
    assert [file.path for file in attempt.publish().manifest.files] == ["a"]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("other")], ids=["removed", "written"])
def test_a_file_that_changes_meanwhile_is_told_as_such(store, new_attempt, change):
    attempt = begin(new_attempt(), store)
    path = attempt.watched.write("model")
    state = attempt.watched.state()
    change(path)
    with pytest.raises(SourceChanged):
        attempt.publisher.publish(state)
    assert list(snapshots(store)) == []


def test_a_script_that_writes_faster_than_the_store_takes_is_published_by_copies(store, new_attempt, monkeypatch):
    attempt = begin(new_attempt(), store)
    path = attempt.watched.write("model", "0")
    upload_many, written = type(store).upload_many, iter("123456789")

    def slow(self, items):
        path.write_text(next(written))  # the script goes on while bytes are on their way
        return upload_many(self, items)

    monkeypatch.setattr(type(store), "upload_many", slow)
    with pytest.raises(SourceChanged):
        attempt.publisher.publish(attempt.watched.state())
    (file,) = attempt.publisher.publish(attempt.watched.state()).manifest.files
    assert store.read(file.object) == b"1" and path.read_text() == "2"
    assert not Path(f"{attempt.watched.path}.staging").exists()


def test_on_a_full_disk_what_is_still_is_published_without_copies(store, new_attempt, monkeypatch):
    attempt = begin(new_attempt(), store)
    path = attempt.watched.write("model", "0")
    upload_many = type(store).upload_many

    def slow(self, items):
        path.write_text("1")
        monkeypatch.setattr(type(store), "upload_many", upload_many)
        return upload_many(self, items)

    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(store), "upload_many", slow)
    with pytest.raises(SourceChanged):
        attempt.publisher.publish(attempt.watched.state())
    monkeypatch.setattr(publisher.shutil, "copyfile", refuse)
    with pytest.raises(OSError, match="No space"):
        attempt.publisher.publish(attempt.watched.state())
    makedirs = os.makedirs
    monkeypatch.setattr(
        os, "makedirs", lambda path, *a, **k: refuse() if "appended" in path else makedirs(path, *a, **k)
    )
    (file,) = attempt.publisher.publish(attempt.watched.state()).manifest.files
    monkeypatch.undo()
    assert store.read(file.object) == b"1"


def test_another_time_alone_sends_nothing(store, new_attempt):
    """As after `chown` or with one more hard link; a new snapshot does no harm, gigabytes would."""
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1")
    os.link(attempt.watched.path / "one", attempt.watched.path.parent / "link")
    assert attempt.publish(two="22").uploaded_size == 2


def test_what_was_written_again_with_the_old_time_is_sent(store, new_attempt):
    attempt = begin(new_attempt(), store)
    path = attempt.watched.write("one", "1")
    os.utime(path, ns=(0, 0))
    attempt.publish()
    path.write_text("2")
    os.utime(path, ns=(0, 0))
    published = attempt.publish()
    assert store.read(published.manifest.files[0].object) == b"2"


@pytest.mark.parametrize(("content", "known"), [("1", True), ("2", False)])
def test_in_a_folder_that_is_in_use_only_the_same_bytes_are_known(store, new_attempt, content, known):
    """An agent that takes the place of another, which was killed after it had published, or before."""
    attempt = begin(new_attempt(), store)
    path = attempt.watched.write("one", "1")
    manifest = attempt.publish().manifest
    path.write_text(content)
    os.utime(path, ns=(0, manifest.files[0].mtime_ns))
    attempt.claim = claim(store, "job")
    attempt.publisher.__init__(store, attempt.claim, attempt.watched.folder)
    attempt.publisher.begin_with(manifest, str(manifest.name), in_use=True)
    assert attempt.publisher.stamps == ({"one": Stamp.from_status(path.stat())} if known else {})


# What is kept.


def test_the_newest_snapshots_are_kept_and_their_data(store, new_attempt):
    attempt = begin(new_attempt(kept=3), store)
    for number in range(6):
        attempt.publish(same="same", **{"changes": f"{number}", f"only-{number}": f"{number}"})
        (attempt.watched.path / f"only-{number}").unlink()
    kept = list(snapshots(store))
    assert [name.sequence for name in kept] == [6, 5, 4]
    manifests = [read_manifest(store, name) for name in kept]
    needed = {file.object for manifest in manifests for file in manifest.files}
    assert set(keys(store, DATA)) == needed
    assert keys(store, SNAPSHOTS) == sorted(name.key for name in kept)


def test_a_damaged_snapshot_is_not_one_of_those_that_are_kept(store, new_attempt):
    attempt = begin(new_attempt(kept=2), store)
    names = [attempt.publish(file=str(number)).manifest.name for number in range(2)]
    store.write(names[1].key, b"damaged")
    attempt.publish(file="new")
    assert [name.sequence for name in snapshots(store)] == [3, 1]


def test_a_new_attempt_keeps_what_it_began_with_until_it_has_its_own(store, new_attempt):
    first = begin(new_attempt(), store)
    base = first.publish(model="1").manifest
    second = begin(new_attempt(), store)
    assert keys(store, SNAPSHOTS) == [base.name.key]
    for number in range(5):
        second.publish(other=str(number))
    # The file of the first attempt is still in every snapshot of the second, and its data are there.
    assert keys(store, f"{DATA}000001/") == [base.files[0].object]
    assert restore(store, str(first.watched.path)).files == 2


def test_what_was_lost_half_way_is_removed(store, new_attempt):
    store.write(f"{DATA}000001/00000099", b"of an agent that was killed")
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1")
    assert keys(store, DATA) == [f"{DATA}000001/00000001"]


def test_older_claims_go_and_a_later_attempts_things_stay(store, new_attempt):
    first, second = begin(new_attempt(), store), begin(new_attempt(), store)
    later = claim(store, "later")
    theirs = [f"{DATA}{later.attempt:06d}/00000001", f"{SNAPSHOTS}{later.attempt:06d}-00000001.json"]
    for key in theirs:
        store.write(key, b"theirs")
    second.watched.write("one")
    with pytest.raises(Overtaken):
        second.publisher.publish(second.watched.state())
    second.publisher.clean_up()
    assert keys(store, CLAIMS) == [second.claim.key, later.key]
    assert first.claim.key not in keys(store, CLAIMS)
    assert set(theirs) <= set(keys(store, ""))


def test_what_is_not_ours_is_left_alone(store, new_attempt):
    others = ["plain/model", ".estimator/notes.txt", ".estimator/attempts/readme", ".estimator/snapshots/readme"]
    for key in others:
        store.write(key, b"x")
    attempt = begin(new_attempt(), store)
    attempt.publish(one="1")
    assert set(others) <= set(keys(store, ""))


# Who may publish.


def test_a_stale_writer_is_told_and_what_it_wrote_does_not_count(store, new_attempt):
    stale = begin(new_attempt(), store)
    base = stale.publish(model="1").manifest
    newer = begin(new_attempt(), store)
    stale.watched.write("model", "stale")
    with pytest.raises(Overtaken, match="an attempt later than 1"):
        stale.publisher.publish(stale.watched.state(stale.publisher.stamps))
    assert next(iter(snapshots(store))) == base.name
    ours = newer.publish(model="newer").manifest
    assert next(iter(snapshots(store))) == ours.name


def test_a_stale_writer_that_tidies_up_takes_nothing_from_a_newer_one(store, new_attempt):
    stale = begin(new_attempt(kept=1), store)
    stale.publish(model="1", other="1")
    newer = begin(new_attempt(), store)
    newer.publish(model="2")
    stale.publisher.clean_up()
    target = stale.watched.path.parent / "restored"
    assert restore(store, str(target)).files == 2
    assert (target / "model").read_text() == "2"
    assert Claim.from_bytes(store.read(newer.claim.key)).base == "000001-00000001"
