"""What the console says differs between two jobs: their documents and the files of their code."""

from __future__ import annotations

import json
import time

import pytest

from estimator_sdk import backends
from estimator_sdk.code import bundle
from estimator_sdk.server.jobs import difference
from tests.console.folders import make_job


@pytest.fixture
def between(tmp_path, monkeypatch):
    """What differs between two jobs with these files, and hyperparameters."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("ESTIMATOR_HOME", str(home))

    def make(name, files, given):
        hyperparameters = {key: json.dumps(value) for key, value in given.items()}
        if files is not None:
            sources = tmp_path / name
            for path, content in files.items():
                (sources / path).parent.mkdir(parents=True, exist_ok=True)
                (sources / path).write_bytes(content)
            archive = tmp_path / f"{name}.tar.gz"
            bundle.write({path: sources / path for path in files}, archive)
            hyperparameters["sagemaker_submit_directory"] = json.dumps(str(archive))
        document = {"TrainingJobName": name, "HyperParameters": hyperparameters}
        make_job(home, name).request.write_text(json.dumps(document))
        return backends.attach(name)

    def compare(before, after, first=None, second=None):
        return difference.between(make("a", before, first or {}), make("b", after, second or {}))

    return compare


def test_changed_added_and_removed_files_are_told_apart(between):
    found = between(
        {"train.py": b"one\ntwo\n", "old.py": b"x = 1\n", "same.py": b"same\n", "data": b"\0"},
        {"train.py": b"one\n2\n", "lib/new.py": b"y = 1\n", "same.py": b"same\n", "data": b"\0\0"},
    )
    files = {each["name"]: each for each in found["files"]}
    assert {name: each["change"] for name, each in files.items()} == {
        "data": "changed",
        "lib/new.py": "added",
        "old.py": "removed",
        "train.py": "changed",
    }
    assert files["train.py"]["lines"] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert files["old.py"]["lines"] == ["@@ -1 +0,0 @@", "-x = 1"]
    assert (files["data"]["is_text"], files["data"]["lines"]) == (False, [])
    assert not found["is_cut"]


def test_the_documents_differ_without_their_secrets(between):
    found = between(None, None, {"lr": 0.1, "api_token": "hide-me"}, {"lr": 0.2, "api_token": "hide-me-too"})
    assert [line.strip(" ,") for line in found["request"] if "lr" in line] == ['-    "lr": "0.1"', '+    "lr": "0.2"']
    assert "hide-me" not in json.dumps(found)
    assert found["files"] == []


def test_code_that_is_gone_is_said_and_the_documents_are_compared(between, tmp_path):
    between({"train.py": b"1\n"}, {"train.py": b"2\n"})
    (tmp_path / "b.tar.gz").unlink()
    found = difference.between(backends.attach("a"), backends.attach("b"))
    assert found["why"].startswith("the code of b is not on this machine any more")
    assert any("b.tar.gz" in line for line in found["request"])
    (tmp_path / "b.tar.gz").write_bytes(b"no archive")
    assert "cannot be read" in difference.between(backends.attach("a"), backends.attach("b"))["why"]


def test_what_takes_long_to_compare_is_not_compared_line_by_line(between):
    long = difference.MOST_LINES + 1
    started = time.monotonic()
    found = between(
        {"long.py": b"".join(b"%d\n" % number for number in range(long)), "wide.py": b"x" * 10_000 + b"\n"},
        {"long.py": b"".join(b"%d\n" % -number for number in range(long)), "wide.py": b"y" * 10_000 + b"\n"},
    )
    files = {each["name"]: each for each in found["files"]}
    assert not files["long.py"]["is_text"]
    assert max(map(len, files["wide.py"]["lines"])) == difference.LONGEST_LINE
    assert time.monotonic() - started < 30


def test_an_answer_has_a_bound(between, monkeypatch):
    monkeypatch.setattr(difference, "MOST_SHOWN", 10)
    texts = [b"".join(b"%d %d\n" % (kind, number) for number in range(100)) for kind in range(2)]
    found = between({"a.py": texts[0], "b.py": texts[0]}, {"a.py": texts[1], "b.py": texts[1]})
    assert sum(len(each["lines"]) for each in found["files"]) == 10
    assert found["is_cut"]
    monkeypatch.setattr(difference, "MOST_CODE", 100)
    again = difference.between(backends.attach("a"), backends.attach("b"))
    assert "which are not compared here" in again["why"]
