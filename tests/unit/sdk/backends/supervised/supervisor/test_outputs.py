"""What the archives of a job hold, of what its hosts left."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from estimator_sdk.backends.supervised.supervisor import outputs
from estimator_sdk.backends.supervised.supervisor.outputs import HostTree


@pytest.fixture
def trees(tmp_path):
    """Makes the folders of hosts, from names and texts."""

    def make(*hosts: dict[str, str]) -> list[HostTree]:
        made = []
        for number, files in enumerate(hosts, 1):
            path = tmp_path / f"algo-{number}"
            path.mkdir()
            for name, text in files.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_text(text)
            made.append(HostTree(f"algo-{number}", path, "/opt/ml/model"))
        return made

    return make


def members(path: Path) -> dict[str, str]:
    """Files as their texts, links as their targets behind an arrow, folders as a slash."""
    with tarfile.open(path) as tar:
        return {
            each.name: tar.extractfile(each).read().decode()
            if each.isfile()
            else f"-> {each.linkname}"
            if each.issym()
            else "/"
            for each in tar
        }


def test_files_of_one_name_clash_unless_they_are_equal_and_all_others_come_together(tmp_path, trees):
    target = tmp_path / "model.tar.gz"
    one = {"a/same": "1", "a/mine": "1", "a/differs": "1", "kind/file": "1", "file": "1"}
    other = {"a/same": "1", "a/theirs": "2", "a/differs": "2", "kind": "2", "file/deep/er": "2"}
    archived = outputs.archive(trees(one, other, {"a/same": "1"}), target)
    together = {"a": "/", **one, "a/theirs": "2", "kind": "/"}
    assert members(target) == together
    assert archived.clashes == {"algo-2": ["a/differs", "file", "kind"]} and archived.left_out == []


def test_a_link_by_the_name_that_a_container_has_for_the_folder_is_relative(tmp_path, trees):
    (tree,) = trees({"deep/weights": "1"})
    for name, target in (
        ("deep/a", "/opt/ml/model/deep/weights"),
        ("b", f"{tree.path}/deep"),
        ("c", "/opt/ml/model"),
        ("d", "/opt/ml/models/x"),
        ("e", "deep/../.."),
        ("f", "nothing"),
    ):
        (tree.path / name).symlink_to(target)
    archived = outputs.archive([tree], tmp_path / "model.tar.gz")
    found = members(tmp_path / "model.tar.gz")
    assert {name: found[name] for name in found if found[name].startswith("->")} == {
        "deep/a": "-> weights", "b": "-> deep", "c": "-> .", "f": "-> nothing"
    }  # fmt: skip
    assert sorted(archived.left_out) == [
        "'d' of algo-1, a link to '/opt/ml/models/x', outside the folder",
        "'e' of algo-1, a link to 'deep/../..', outside the folder",
    ]


def test_names_are_bytes_and_a_tree_may_be_deeper_than_python_can_recurse(tmp_path, trees):
    (tree,) = trees({})
    odd = os.fsdecode(b"\xff\n")
    (tree.path / odd).write_text("odd")
    above = os.open(tree.path, os.O_RDONLY)
    for _ in range(depth := sys.getrecursionlimit() + 100):
        os.mkdir("d", dir_fd=above)
        below = os.open("d", os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    try:
        outputs.archive([tree], tmp_path / "model.tar.gz")
    finally:
        subprocess.run(["rm", "-r", str(tree.path)], check=True)  # which pytest cannot
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        names = tar.getnames()
    assert odd in names and "/".join("d" * depth) in names
