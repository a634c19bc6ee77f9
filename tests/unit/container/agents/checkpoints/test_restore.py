import contextlib
import itertools
import os
import subprocess
from dataclasses import replace

import estimator_container
import pytest
from estimator_container.agents.checkpoints.format import CLAIMS, DATA, SNAPSHOTS, Claim, Damaged, Name, UnknownFormat
from estimator_container.agents.checkpoints.restore import (
    NothingWhole,
    claim,
    copy,
    is_overtaken,
    newest_whole_manifest,
    read_manifest,
    restore,
    snapshots,
)
from estimator_container.storage import NotFound, Object, StorageError, StoreUnavailable

from tests import readable


def begin(attempt, store):
    return attempt.begin(restore(store, str(attempt.watched.path)))


@pytest.fixture
def published(store, new_attempt):
    """Three snapshots, the newest first; the content of `model` is their number."""
    attempt = begin(new_attempt(), store)
    (attempt.watched.path / "empty").mkdir()
    (attempt.watched.path / "latest").symlink_to("model")
    found = [attempt.publish(model=str(number), same="same").manifest for number in (1, 2, 3)]
    return found[::-1]


@pytest.fixture
def target(tmp_path):
    made = tmp_path / "target"
    made.mkdir()
    return made


def test_the_newest_snapshot_comes_back_as_it_was(store, published, target):
    restored = restore(store, str(target))
    assert (restored.base, restored.manifest, restored.passed_over) == (str(published[0].name), published[0], ())
    assert (restored.files, restored.size) == (2, 5)
    assert (target / "model").read_text() == "3"
    assert (target / "latest").readlink().name == "model"
    assert (target / "empty").is_dir()
    for file in published[0].files:
        status = (target / file.path).stat()
        assert (status.st_mtime_ns, status.st_mode & 0o7777) == (file.mtime_ns, file.mode)
    assert not target.with_name("target.restoring").exists()


def test_what_was_closed_to_others_is_closed_again_and_lends_nobody_any_rights(store, new_attempt, target):
    attempt = begin(new_attempt(), store)
    modes = {"private": 0o700, "private/deep": 0o750, "locked": 0o500, "shared": 0o1777}
    for name, mode in modes.items():
        attempt.watched.write(f"{name}/model").chmod(0o4755)
        (attempt.watched.path / name).chmod(mode)
    manifest = attempt.publish().manifest
    for _ in range(2):  # the second finds a locked folder in its place
        restore(store, str(target))
        assert {name: (target / name).stat().st_mode & 0o7777 for name in modes} == modes
        assert {(target / name / "model").stat().st_mode & 0o7777 for name in modes} == {0o755}
    lent = replace(manifest, name=Name(1, 9), files=tuple(replace(file, mode=0o6755) for file in manifest.files))
    store.write(lent.name.key, lent.to_bytes())
    assert restore(store, str(target)).manifest == lent
    assert {(target / name / "model").stat().st_mode & 0o7777 for name in modes} == {0o755}


def test_a_file_that_lends_rights_is_no_news_after_a_restore(store, new_attempt):
    first = begin(new_attempt(), store)
    first.watched.write("model").chmod(0o4755)
    first.publish()
    second = begin(new_attempt(), store)
    assert not second.publisher.is_news(second.watched.state(second.publisher.stamps))


LOCKED = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[1])
from estimator_container.agents.checkpoints.restore import restore
from estimator_container.storage import open_store
with tempfile.TemporaryDirectory() as folder:
    os.makedirs(f"{folder}/target/locked/deep")
    open(f"{folder}/target/locked/deep/file", "w").close()
    os.chmod(f"{folder}/target/locked/deep", 0o500)
    os.chmod(f"{folder}/target/locked", 0o500)
    os.makedirs(f"{folder}/store")
    open(f"{folder}/store/model", "w").close()
    restore(open_store(f"file://{folder}/store"), f"{folder}/target")
    print(os.listdir(f"{folder}/target"))
"""


def test_a_folder_that_its_owner_has_locked_is_replaced():
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    with readable.copies(estimator_container) as folder:
        command = ["/usr/bin/python3", "-I", "-S", "-c", LOCKED, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **nobody)
    assert (done.stdout, done.stderr) == ("['model']\n", "")


@pytest.mark.parametrize(
    ("other", "words"),
    [("steps/3", r"an object 'steps' and others below 'steps/'"), ("n" * 256, "a name of 256 bytes")],
)
def test_a_plain_tree_that_no_folder_can_hold_is_refused_and_nothing_changes(store, target, other, words):
    class Odd:
        """As S3 may have it."""

        uri = "s3://bucket/tree"

        def list(self, prefix=""):
            keys = [] if prefix else ["steps", other]
            return iter([Object(key, 1, "e") for key in sorted(keys)])

    (target / "before").write_text("x")
    with pytest.raises(StorageError, match=words):
        restore(Odd(), str(target))
    assert [path.name for path in target.iterdir()] == ["before"]


def damage_manifest(store, manifest):
    data = store.read(manifest.name.key)
    store.write(manifest.name.key, data.replace(b"model", b"m0del"))


def lose_data(store, manifest):
    store.delete([own_object(manifest)])


def change_data(store, manifest):
    store.write(own_object(manifest), b"x")


def cut_data(store, manifest):
    store.write(own_object(manifest), b"")


def swap_manifest(store, manifest):
    """One that is whole, under the name of another."""
    others = [name for name in snapshots(store) if name != manifest.name]
    store.write(manifest.name.key, store.read(others[-1].key))


def own_object(manifest):
    return next(file.object for file in manifest.files if file.path == "model")


DAMAGES = [damage_manifest, lose_data, change_data, cut_data, swap_manifest]


@pytest.mark.parametrize("damage", DAMAGES)
def test_for_a_damaged_snapshot_the_one_before_it_comes_back(store, published, target, damage):
    damage(store, published[0])
    restored = restore(store, str(target))
    assert restored.base == str(published[1].name)
    assert (target / "model").read_text() == "2"
    (passed,) = restored.passed_over
    assert passed.startswith(f"{published[0].name}: ")


@pytest.mark.parametrize("damage", DAMAGES[:4])
def test_where_none_is_whole_nothing_is_restored_and_it_is_said(store, published, target, damage):
    store.write("plain", b"x")
    for manifest in published:
        damage(store, manifest)
    with pytest.raises(NothingWhole, match="3 snapshots, but none is complete"):
        restore(store, str(target))
    assert list(target.iterdir()) == []
    assert not target.with_name("target.restoring").exists()


class Away:
    """A store of which one method fails from its so manieth call on."""

    def __init__(self, store, method, after=0):
        self._store, self._method, self._left = store, method, after

    def __getattr__(self, name):
        def call(*arguments, **options):
            if name == self._method:
                self._left -= 1
                if self._left < 0:
                    raise StoreUnavailable("away")
            return getattr(self._store, name)(*arguments, **options)

        return self._store.uri if name == "uri" else call


@pytest.mark.parametrize(
    ("method", "after"), [("list", 0), ("list", 1), ("read", 0), ("read", 1), ("read", 2), ("download_many", 0)]
)
def test_a_store_that_is_away_is_an_error_and_no_reason_to_take_an_older_one(store, published, target, method, after):
    damage_manifest(store, published[0])  # so that a second one is read
    with pytest.raises(StoreUnavailable):
        restore(Away(store, method, after), str(target))
    assert list(target.iterdir()) == []


def test_a_snapshot_of_a_newer_toolkit_is_an_error_and_no_reason_to_take_an_older_one(store, published, target):
    newer = published[0].to_bytes().replace(b'"format":2', b'"format":3')
    from estimator_container.agents.checkpoints import format as formats

    document = formats.json.loads(newer)
    del document["sha256"]
    store.write(published[0].name.key, formats._canonical({**document, "sha256": formats._checksum(document)}))
    with pytest.raises(UnknownFormat):
        restore(store, str(target))


def test_nothing_is_restored_where_nothing_is(store, target):
    restored = restore(store, str(target))
    assert (restored.base, restored.files, restored.manifest) == ("nothing", 0, None)
    assert list(target.iterdir()) == []


def test_a_plain_tree_comes_back_as_it_is(store, target):
    for key, data in {"model": b"1", "steps/3/model": b"33", "é b": b""}.items():
        store.write(key, data)
    store.write(".estimator/notes", b"not the script's")
    claim(store, "job")
    restored = restore(store, str(target))
    assert (restored.base, restored.files, restored.size) == ("plain", 3, 3)
    found = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert found == {"model": b"1", "steps/3/model": b"33", "é b": b""}


def test_a_snapshot_comes_before_a_plain_tree(store, published, target):
    store.write("plain", b"x")
    assert restore(store, str(target)).base == str(published[0].name)
    assert not (target / "plain").exists()


def test_what_a_restore_that_was_killed_has_left_is_replaced(store, published, target):
    (target / "empty").mkdir()
    (target / "empty" / "left").write_text("x")
    (target / "model").mkdir()
    (target / "old").symlink_to("/etc")
    restoring = target.with_name("target.restoring")
    restoring.mkdir()
    (restoring / "left").write_text("x")
    restore(store, str(target))
    assert sorted(path.name for path in target.iterdir()) == ["empty", "latest", "model", "same"]
    assert list((target / "empty").iterdir()) == []


def test_the_other_hosts_have_the_same(store, published, target, tmp_path):
    restore(store, str(target))
    others = [tmp_path / "algo-2", tmp_path / "algo-3"]
    others[0].mkdir()
    for name in ("left", "latest"):
        (others[0] / name).write_text("of a copy that was killed")
    copy(str(target), [str(other) for other in others])
    for other in others:
        assert sorted(path.name for path in other.iterdir()) == ["empty", "latest", "model", "same"]
        assert (other / "latest").is_symlink()
        assert (other / "model").read_text() == "3"


# Claims.


def test_every_claim_is_later_than_all_before(store, published):
    numbers = [claim(store, "job").attempt for _ in range(3)]
    assert numbers == [2, 3, 4]
    assert [is_overtaken(store, number) for number in (1, 2, 3, 4)] == [True, True, True, False]


def test_a_claim_is_later_than_every_snapshot(store, published):
    store.delete([each.key for each in store.list(CLAIMS)])
    assert claim(store, "job").attempt == 2


def test_of_two_that_claim_at_once_each_has_its_own(store):
    class Slow:
        """Between the look and the write another one claims."""

        def __init__(self):
            self.others = itertools.count()

        def write(self, key, data, **options):
            if next(self.others) < 2:
                claim(store, "the other")
            return store.write(key, data, **options)

        def __getattr__(self, name):
            return getattr(store, name)

    mine = claim(Slow(), "mine")
    assert mine.attempt == 3
    assert Claim.from_bytes(store.read(mine.key)).job == "mine"


@pytest.mark.parametrize("data", [b"", b"damaged", b"[]", b'{"format":1,"attempt":1,"job":"x","started":0,"base":"?"}'])
def test_a_damaged_claim_ends_nothing(store, published, target, data):
    store.write(published[0].name.key.replace("snapshots", "attempts").replace("-00000003", ""), data)
    assert len(list(store.list(CLAIMS))) == 1
    assert restore(store, str(target)).base == str(published[0].name)


def test_a_claim_that_is_removed_meanwhile_ends_nothing(store, published, target):
    """By the attempt that is about to be overtaken, which tidies up."""
    first = claim(store, "job")
    claim(store, "job")

    class Tidied:
        def read(self, key, *arguments):
            if key == first.key:
                raise NotFound(key)
            return store.read(key, *arguments)

        def __getattr__(self, name):
            return getattr(store, name)

    assert restore(Tidied(), str(target)).base == str(published[0].name)


def test_strange_names_among_ours_are_passed_over(store, published, target):
    for key in ("readme.txt", "9.json", "000009-x.json"):
        store.write(f"{CLAIMS}{key}", b"x")
        store.write(f"{SNAPSHOTS}{key}", b"x")
        store.write(f"{DATA}{key}", b"x")
    assert claim(store, "job").attempt == 2
    assert restore(store, str(target)).base == str(published[0].name)


def test_a_manifest_alone_is_looked_at_where_the_folder_is_in_use(store, published):
    lose_data(store, published[0])
    assert newest_whole_manifest(store) == published[0]
    damage_manifest(store, published[0])
    assert newest_whole_manifest(store) == published[1]
    for manifest in published[1:]:
        damage_manifest(store, manifest)
    assert newest_whole_manifest(store) is None


def test_a_manifest_that_is_gone_is_damaged(store, published):
    store.delete([published[0].name.key])
    with pytest.raises(Damaged, match="is missing"):
        read_manifest(store, published[0].name)


def test_a_plain_key_that_no_file_can_have_is_named(store, target):
    class Odd:
        uri = "s3://bucket/prefix"

        def list(self, prefix=""):
            from estimator_container.storage import Object

            return iter([Object("a/../../b", 1, "x")]) if not prefix else iter(())

        def download_many(self, items):
            return list(items)

    with pytest.raises(StorageError, match="'a/../../b'"):
        restore(Odd(), str(target))
    with contextlib.suppress(FileNotFoundError):
        assert list(target.iterdir()) == []
