"""What is at hand is not fetched again, and is what the snapshot says."""

import os

import pytest
from estimator_container.agents.checkpoints.restore import NothingWhole, restore


@pytest.fixture
def attempt(store, new_attempt):
    made = new_attempt()
    return made.begin(restore(store, str(made.watched.path)))


@pytest.fixture
def lost(store, attempt):
    """A folder with all of a snapshot, whose data its store has lost."""
    manifest = attempt.publish(kept="kept", changed="before", cut="whole", gone="there").manifest
    store.delete({file.object for file in manifest.files})
    return attempt.watched.path


def test_what_is_there_byte_for_byte_needs_no_store(store, lost):
    restored = restore(store, str(lost), at_hand=True)
    assert restored.files == 4 and (lost / "changed").read_text() == "before"


def test_without_a_word_everything_is_fetched(store, lost):
    with pytest.raises(NothingWhole):
        restore(store, str(lost))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "changed").write_text("behind"),
        lambda folder: (folder / "cut").write_text("who"),
        lambda folder: (folder / "gone").unlink(),
        lambda folder: ((folder / "gone").unlink(), (folder / "gone").symlink_to("kept")),
        lambda folder: ((folder / "gone").unlink(), os.mkfifo(folder / "gone")),
        lambda folder: ((folder / "gone").unlink(), (folder / "gone").mkdir()),
    ],
)
def test_what_is_missing_or_another_is_fetched(store, lost, change):
    change(lost)
    with pytest.raises(NothingWhole):
        restore(store, str(lost), at_hand=True)


def test_what_is_in_no_snapshot_goes(store, attempt):
    attempt.publish(kept="kept")
    (attempt.watched.path / "newer").write_text("half")
    restore(store, str(attempt.watched.path), at_hand=True)
    assert [path.name for path in attempt.watched.path.iterdir()] == ["kept"]


def test_what_was_never_published_goes_where_there_is_no_snapshot_yet(store, attempt):
    (attempt.watched.path / "half").mkdir()
    (attempt.watched.path / "half" / "file").write_text("torn")
    assert restore(store, str(attempt.watched.path), at_hand=True).base == "nothing"
    assert list(attempt.watched.path.iterdir()) == []


def test_who_has_a_file_open_changes_nothing_that_is_taken_over(store, attempt):
    attempt.publish(kept="kept")
    with (attempt.watched.path / "kept").open("r+") as still_open:
        restore(store, str(attempt.watched.path), at_hand=True)
        still_open.write("late")
    assert (attempt.watched.path / "kept").read_text() == "kept"
