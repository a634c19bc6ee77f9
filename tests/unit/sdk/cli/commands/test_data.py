"""`estimator data`; what the shards hold is tested with `packing`."""

from __future__ import annotations

import json

import pytest

from estimator_sdk.cli.main import main


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for each in range(3):
        (folder / f"{each}.txt").write_text("x")
    return str(folder)


def test_files_are_packed_and_listed(files, tmp_path, capsys):
    target = f"file://{tmp_path / 'shards'}"
    assert main(["data", "pack", files, target]) == 0
    assert "3 samples in 1 shard of 10.2 kB at file:///" in capsys.readouterr().out
    assert main(["data", "index", target, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shards": 1, "samples": 3, "size": 10240}
    assert main(["data", "pack", files, target]) == 1
    assert "has files already, such as 'index.json'" in capsys.readouterr().err


def test_a_part_that_some_samples_lack_is_said(files, tmp_path, capsys):
    (tmp_path / "files" / "1.cls").write_text("7")
    assert main(["data", "pack", files, f"file://{tmp_path / 'shards'}"]) == 0
    assert "note: 1 of 3 samples have 'cls', and others, such as '0', do not" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pack", "."], "pack needs a folder and a URI"),
        (["pack", "nothing", "file:///tmp/x"], "'nothing' is not a folder"),
        (["pack", ".", "/tmp/x"], "write it as a URI: 'file:///tmp/x'"),
        (["pack", ".", "file:///tmp/x", "--seed", "1", "--keep-order"], "give only one of them"),
        (["pack", ".", "file:///tmp/x", "--pattern", "*"], "--pattern is for index"),
        (["index", "a", "b"], "index needs one URI"),
        (["index", "file:///tmp/x", "--shard-mib", "3"], "--shard-mib is for pack; leave it out"),
        (["unpack", "x"], "invalid choice: 'unpack'"),
    ],
)
def test_wrong_words_get_one_sentence(words, sentence, capsys):
    assert main(["data", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
