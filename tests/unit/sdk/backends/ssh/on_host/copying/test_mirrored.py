"""Files of a job that are copied to its client, whose numbers are given to others when they are removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estimator_sdk.backends.ssh.on_host.copying.mirrored import MirroredFiles

CLOCKS = "hosts/algo-1/output/logs/timelines/clocks.json"
FRAMES = "hosts/algo-1/output/logs/frames"


@pytest.fixture
def job(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return write, MirroredFiles(tmp_path), tmp_path


def news(files, known):
    told, contents = files.news(known, False, True)
    return {path: list(state) for path, state in told["files"].items()}, told["pieces"], contents


def test_a_file_with_the_number_of_another_that_was_removed_is_a_new_one(job):
    write, files, folder = job
    write(FRAMES, "abc")
    known, _, _ = news(files, {})
    write(CLOCKS, "longer")
    (folder / FRAMES).unlink()
    gone = {FRAMES: [(folder / CLOCKS).stat().st_ino, 3, 0]}  # as if it had had that number
    assert news(files, gone)[1:] == ([(CLOCKS, -1, 6)], b"longer")
    assert known[FRAMES][1] == 3


def test_clocks_that_are_written_anew_under_their_old_number_come_whole(job):
    write, files, folder = job
    write(CLOCKS, "first")
    os.utime(folder / CLOCKS, ns=(0, 0))  # the clock of files may not have moved on between two writes
    known, _, _ = news(files, {})
    assert news(files, known)[1:] == ([], b"")
    write(CLOCKS, "second, which is longer")
    assert news(files, known)[1:] == ([(CLOCKS, -1, 23)], b"second, which is longer")


def test_a_folder_that_is_set_aside_while_it_is_listed_is_looked_for_again(job, monkeypatch):
    write, files, folder = job
    write(FRAMES, "abc")
    real, left = Path.glob, [True]

    def glob(path, pattern):
        if left and "frames" in pattern and not pattern.startswith("attempts"):
            left.clear()
            (folder / "attempts" / "1").mkdir(parents=True)
            (folder / "hosts").rename(folder / "attempts" / "1" / "hosts")
            raise FileNotFoundError(2, "No such file or directory")
        return real(path, pattern)

    monkeypatch.setattr(Path, "glob", glob)
    assert news(files, {})[1:] == ([(f"attempts/1/{FRAMES}", -1, 3)], b"abc")


def test_what_an_attempt_has_written_is_known_when_it_has_moved(job):
    write, files, folder = job
    write(FRAMES, "abc")
    known, _, _ = news(files, {})
    moved = folder / "attempts/1" / FRAMES
    moved.parent.mkdir(parents=True)
    (folder / FRAMES).rename(moved)
    with moved.open("a") as file:
        file.write("de")
    assert news(files, known)[1:] == ([(f"attempts/1/{FRAMES}", 3, 2)], b"de")
