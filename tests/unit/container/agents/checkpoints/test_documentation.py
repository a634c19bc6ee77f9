"""The restore that docs/checkpoints.md shows, on what the toolkit has written."""

import re
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.format import Name
from estimator_container.agents.checkpoints.restore import restore

DOCUMENT = Path(__file__).parents[5] / "docs" / "checkpoints.md"


@pytest.fixture(scope="module")
def shown():
    """The names that the document's Python defines, of what needs the standard library alone."""
    names = {}
    code, _ = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), flags=re.S)
    exec(code, names)
    return names


@pytest.fixture
def plain_files(tmp_path):
    root = tmp_path / "store"

    def keys(prefix):
        return [str(path.relative_to(root)) for path in root.glob(f"{prefix}*") if path.is_file()]

    return keys, lambda key: (root / key).read_bytes()


def content(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def test_it_gives_what_the_toolkit_gives(shown, plain_files, store, new_attempt, tmp_path):
    first = new_attempt()
    first.begin(restore(store, str(first.watched.path)))
    (first.watched.path / "empty").mkdir()
    (first.watched.path / "latest").symlink_to("model")
    first.watched.write("step/é", "deep")
    first.publish(model="1")
    second = new_attempt()
    second.begin(restore(store, str(second.watched.path)))
    second.publish(model="2")
    last = second.publish(model="3").manifest
    store.write(Name(1, 99).key, store.read(last.name.key))  # of a stale writer
    store.write(next(file.object for file in last.files if file.path == "model"), b"damaged")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    restored = restore(store, str(ours))
    assert shown["restore"](*plain_files, str(theirs)) == restored.base == "000002-00000001"
    assert content(theirs) == content(ours)
    assert content(ours)["model"] == b"2"
