"""Bringing what a host measures and logs, as it grows and begins anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from estimator_sdk.backends.ssh.on_host.copying.measured import FOLDERS, MeasuredFiles
from estimator_sdk.backends.ssh.on_host.copying.mirrored import MirroredFiles
from estimator_sdk.backends.ssh.on_host.copying.trees import DATA, TreeLanding

TELEMETRY, METRICS, TIMELINES = FOLDERS


class Brought:
    """A host's folder, and what another machine has of it."""

    def __init__(self, here: Path, there: Path) -> None:
        self.here, self.there = here, there
        self.files = MeasuredFiles()
        for folder in FOLDERS:
            (here / folder).mkdir(parents=True)

    def bring(self) -> int:
        """Returns how many messages that took."""
        items = list(self.files.news(str(self.here)))
        for item in items:
            TreeLanding(str(self.there)).take(*item)
        return len(items)

    def contents(self, root: Path) -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    @property
    def is_same(self) -> bool:
        return self.contents(self.here) == self.contents(self.there)


@pytest.fixture
def brought(tmp_path):
    return Brought(tmp_path / "here", tmp_path / "there")


def test_files_grow_at_the_other_end_and_only_what_is_new_is_sent(brought):
    values, tail = brought.here / METRICS / "0-7", brought.here / TELEMETRY / "2.tail"
    for more, messages in ((b"first", 3), (b"second" * 100_000, 4), (b"", 0)):
        for path in (values, tail):
            with path.open("ab") as file:
                file.write(more)
        assert brought.bring() == messages
        assert brought.is_same


def test_a_tail_that_begins_anew_is_anew_whatever_its_length(brought):
    tail = brought.here / TELEMETRY / "2.tail"
    for content in (b"abcdef", b"xy", b"", b"xyz longer than all", b"other, and longer still than the one before"):
        tail.write_bytes(content)
        brought.bring()
        assert brought.is_same


def test_a_file_in_the_place_of_another_is_whole(brought):
    values = brought.here / METRICS / "0-7"
    values.write_bytes(b"the first of them")
    brought.bring()
    values.rename(brought.here / "kept")  # so that its number is not given again
    values.write_bytes(b"another")
    brought.bring()
    assert (brought.there / METRICS / "0-7").read_bytes() == b"another"


def test_what_is_no_regular_file_is_left_out(brought):
    (brought.here / METRICS / "link").symlink_to("/etc/passwd")
    (brought.here / METRICS / "folder").mkdir()
    assert brought.bring() == 0


def mirrored(job: Path, known: dict[str, list[int]], **wanted: bool) -> tuple[dict[str, list[int]], dict[str, bytes]]:
    """What is new of a job: the states of its files, and the pieces by their paths."""
    answer, contents = MirroredFiles(job).news(known, False, **wanted)
    pieces, at = {}, 0
    for path, offset, size in answer["pieces"]:
        pieces[path] = (offset, contents[at : at + size])
        at += size
    return {path: list(state) for path, state in answer["files"].items()}, pieces


def test_a_client_is_sent_the_growth_of_a_tail_or_a_new_one(tmp_path):
    path = f"hosts/algo-1/{TELEMETRY}/2.tail"
    tail = tmp_path / path
    tail.parent.mkdir(parents=True)
    known: dict[str, list[int]] = {}
    for content, piece in ((b"abc", (-1, b"abc")), (b"abcde", (3, b"de")), (b"xbcdefg", (-1, b"xbcdefg"))):
        with tail.open("r+b" if tail.exists() else "wb") as file:
            file.write(content)
        assert mirrored(tmp_path, known, with_measured=False)[1] == {}
        known, pieces = mirrored(tmp_path, known, with_measured=True)
        assert pieces == {path: piece}
    assert mirrored(tmp_path, known, with_measured=True)[1] == {}


def test_what_a_rank_says_of_a_window_comes_after_the_files_that_it_names(brought, tmp_path):
    names = ["7.json", "7-0.json", "7-0.torch.json", "7-1.json", "7-1.horovod.json", "7-2.json.new"]
    for name in names:
        (brought.here / TIMELINES / name).write_bytes(name.encode())
    sent = [name for kind, name, *_ in brought.files.news(str(brought.here)) if kind == DATA]
    expected = ["7-0.torch.json", "7-1.horovod.json", "7-0.json", "7-1.json", "7.json"]
    assert sent == [f"{TIMELINES}/{name}" for name in expected]
    host = tmp_path / "job" / "hosts" / "algo-1"
    shutil.copytree(brought.here, host)
    (host / TIMELINES / names[-1]).unlink()
    _, pieces = mirrored(tmp_path / "job", {}, with_measured=True)
    assert list(pieces) == [f"hosts/algo-1/{TIMELINES}/{name}" for name in expected]
