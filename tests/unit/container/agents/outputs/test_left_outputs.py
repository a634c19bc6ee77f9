import os
import socket
from pathlib import Path

import pytest
from estimator_container.agents.outputs import left_outputs


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "intermediate"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text("x")
    return folder


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("deep/file", ""),
        ("deep/../deep/file", ""),
        ("{folder}/deep/file", ""),
        ("/opt/ml/output/intermediate/deep/file", "/opt/ml/output/intermediate"),
        ("over", ""),
    ],
)
def test_a_link_to_a_file_of_the_folder_stands_for_a_copy(folder, target, named):
    (folder / "over").symlink_to("deep/file")
    (folder / "link").symlink_to(target.format(folder=folder))
    found = left_outputs.read(str(folder), named)
    assert set(found.files) == {"deep/file", "over", "link"} and found.left_out == {}
    assert found.targets["link"] == os.path.realpath(folder / "deep" / "file")
    assert found.files["link"] == found.files["deep/file"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/etc/hostname", "is a link to '/etc/hostname', outside the folder"),
        ("../beside", "is a link to '../beside', outside the folder"),
        ("out", "is a link to 'out', outside the folder"),
        ("deep/nothing", "is a link to 'deep/nothing', which does not exist"),
        ("link", "is a link to 'link', which does not exist"),
        ("deep", "is a link to 'deep', which is not a file"),
        (".", "is a link to '.', which is not a file"),
        ("deep/fifo", "is a link to 'deep/fifo', which is not a file"),
    ],
)
def test_any_other_link_stays_behind_with_the_reason(folder, target, words):
    (folder.parent / "beside").write_text("x")
    (folder / "out").symlink_to("../beside")
    os.mkfifo(folder / "deep" / "fifo")
    (folder / "link").symlink_to(target)
    found = left_outputs.read(str(folder))
    assert found.left_out["link"] == words and set(found.files) == {"deep/file"}


def test_what_is_no_file_and_what_no_path_can_hold_stays_behind(folder, monkeypatch):
    os.mkfifo(folder / "fifo")
    monkeypatch.chdir(folder / "deep")
    socket.socket(socket.AF_UNIX).bind("socket")
    for _ in range(20):
        os.mkdir("d" * 250)  # noqa: PTH102 - below a path that is too long for one
        os.chdir("d" * 250)
        Path("leaf").touch()
    found = left_outputs.read(str(folder))
    too_long = {name for name, reason in found.left_out.items() if reason == "is too long for a path"}
    others = {name: reason for name, reason in found.left_out.items() if name not in too_long}
    assert others == dict.fromkeys(("fifo", "deep/socket"), "is a device, a FIFO or a socket")
    assert too_long and all(len(os.fsencode(folder / name)) >= 4096 for name in too_long)
    assert len(found.files) < 20
    assert max(len(os.fsencode(folder / name)) for name in found.files) < 4096


def test_a_folder_that_is_none_is_said_and_one_that_is_gone_is_empty(tmp_path):
    (tmp_path / "file").touch()
    assert left_outputs.read(str(tmp_path / "file")).left_out == {"": "cannot be read: Not a directory"}
    assert left_outputs.read(str(tmp_path / "gone")) == left_outputs.LeftOutputs()
