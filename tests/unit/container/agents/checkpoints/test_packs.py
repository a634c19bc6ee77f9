import os

import pytest
from estimator_container.agents.checkpoints.format import DATA
from estimator_container.agents.checkpoints.packs import FULL, SMALL
from estimator_container.agents.checkpoints.restore import NothingWhole, fetch, restore
from estimator_container.storage import SourceChanged

KIB = 1 << 10


def begin(attempt, store):
    return attempt.begin(restore(store, str(attempt.watched.path)))


def write(attempt, sizes):
    """Files of random bytes; returns them."""
    written = {name: os.urandom(size) for name, size in sizes.items()}
    for name, data in written.items():
        (attempt.watched.path / name).write_bytes(data)
    return written


def by_object(manifest):
    found = {}
    for file in manifest.files:
        found.setdefault(file.object, []).append(file.path)
    return sorted(found.values())


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def data_keys(store):
    return {each.key for each in store.list(DATA)}


def test_small_files_share_objects_and_come_back(store, new_attempt, tmp_path):
    attempt = begin(new_attempt(), store)
    small = {f"small-{number:03d}": 64 * KIB for number in range(100)}
    written = write(attempt, {**small, "empty": 0, "edge": SMALL, "large": SMALL + 1})
    manifest = attempt.publish().manifest
    objects = by_object(manifest)
    assert ["large"] in objects
    assert len(objects) == 3  # 7.25 MiB of small ones make two
    sizes = {each.key: each.size for each in store.list(DATA)}
    assert all(sizes[file.object] == (file.shared or file.size) for file in manifest.files)
    assert all(size < FULL + SMALL for size in sizes.values())
    told = []
    fetch(store, manifest, str(tmp_path / "back"), lambda size, objects: told.append((size, objects)))
    assert content(tmp_path / "back") == written
    assert max(told) == (manifest.size, 3)


def test_one_small_file_has_an_object_of_its_own(store, new_attempt):
    attempt = begin(new_attempt(), store)
    (file,) = attempt.publish(model="1").manifest.files
    assert (file.offset, file.shared) == (0, 0)


def test_what_is_still_in_a_pack_is_not_sent_again(store, new_attempt):
    attempt = begin(new_attempt(), store)
    write(attempt, {f"{number:03d}": 64 * KIB for number in range(50)})
    attempt.publish()
    write(attempt, {"007": 3, "049": 4})
    second = attempt.publish()
    assert second.uploaded_size == 7
    again = begin(new_attempt(), store)
    assert again.publish(new="1").uploaded_size == 1


def test_packs_that_are_mostly_gone_are_not_kept_for_the_rest(store, new_attempt, tmp_path):
    attempt = begin(new_attempt(kept=1), store)
    for step in range(12):
        for path in attempt.watched.path.glob("part-*"):
            path.unlink()
        write(attempt, {f"keep-{step:02d}": KIB, **{f"part-{step:02d}-{number}": 100 * KIB for number in range(9)}})
        manifest = attempt.publish().manifest
    kept = sum(each.size for each in store.list(DATA))
    assert kept < 2 * manifest.size + FULL + SMALL, "every step has left its pack"
    assert data_keys(store) == {file.object for file in manifest.files}
    fetch(store, manifest, str(tmp_path / "back"))
    assert content(tmp_path / "back") == content(attempt.watched.path)


def test_a_log_that_has_not_grown_stays_where_it_is(store, new_attempt):
    attempt = begin(new_attempt(), store)
    first = attempt.publish(log="line\n", other="1").manifest
    with (attempt.watched.path / "log").open("a"):
        attempt.watched.write("other", "2")
        state = attempt.watched.state(attempt.publisher.stamps)
        second = attempt.publisher.publish(state, ["log"]).manifest
    logs = [next(file for file in each.files if file.path == "log") for each in (first, second)]
    assert [file.object for file in logs] == [first.files[0].object] * 2
    assert [(file.offset, file.shared) for file in logs] == [(0, 6)] * 2


def test_bytes_that_change_in_a_pack_are_found(store, new_attempt, tmp_path):
    attempt = begin(new_attempt(), store)
    write(attempt, {"a": 100, "b": 100})
    manifest = attempt.publish().manifest
    whole = bytearray(store.read(manifest.files[0].object))
    whole[150] ^= 1
    store.write(manifest.files[0].object, bytes(whole))
    with pytest.raises(NothingWhole, match="b does not have the bytes that were written"):
        restore(store, str(tmp_path / "back"))
    store.delete([manifest.files[0].object])
    with pytest.raises(NothingWhole, match="the bytes of a file are missing"):
        restore(store, str(tmp_path / "back"))


@pytest.mark.parametrize("change", ["grow", "shrink", "remove"])
def test_a_file_that_changes_while_its_pack_is_made_is_in_no_snapshot(store, new_attempt, change):
    attempt = begin(new_attempt(), store)
    write(attempt, {"a": 100, "b": 100})
    state = attempt.watched.state(attempt.publisher.stamps)
    path = attempt.watched.path / "b"
    path.unlink() if change == "remove" else os.truncate(path, 150 if change == "grow" else 50)
    with pytest.raises(SourceChanged):
        attempt.publisher.publish(state)
    assert restore(store, str(attempt.watched.path)).base == "nothing"


def test_a_pack_that_cannot_be_written_is_an_error_and_no_snapshot(store, new_attempt, monkeypatch):
    attempt = begin(new_attempt(), store)
    write(attempt, {"a": 100, "b": 100})
    state = attempt.watched.state(attempt.publisher.stamps)

    def away(self, key, data, **conditions):
        raise SourceChanged("away") if key.startswith(DATA) else AssertionError(f"{key} was written")

    monkeypatch.setattr(type(store), "write", away)
    with pytest.raises(SourceChanged, match="away"):
        attempt.publisher.publish(state)
