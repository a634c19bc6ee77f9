"""Room for the last word, on a disk that fills up."""

import os

import pytest
from estimator_container.runtime import reserve


def test_the_room_is_really_taken_and_given_back(tmp_path):
    path = str(tmp_path / "reserve")
    reserve.keep(path)
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= reserve.SIZE
    reserve.release(path)
    assert not (tmp_path / "reserve").exists()
    reserve.release(path)


def test_a_disk_without_the_room_is_known_at_the_start(tmp_path):
    with pytest.raises(OSError):
        reserve.keep(str(tmp_path / "no" / "such" / "folder"))


def test_the_last_word_takes_no_new_blocks(tmp_path):
    """So another host on the same full disk cannot have them first."""
    path = tmp_path / "reserve"
    reserve.keep(str(path))
    before = path.stat()
    reserve.become(str(path), str(tmp_path / "verdict.json"), b"the reason")
    after = (tmp_path / "verdict.json").stat()
    assert (tmp_path / "verdict.json").read_bytes() == b"the reason"
    assert after.st_ino == before.st_ino and 0 < after.st_blocks <= before.st_blocks and not path.exists()


def test_the_room_of_an_earlier_attempt_may_be_read(tmp_path, monkeypatch):
    """As the C library does on a file system that cannot allocate, before it writes a byte to each block."""
    monkeypatch.setattr(
        os, "posix_fallocate", lambda fd, offset, size: (os.pread(fd, 1, offset), os.ftruncate(fd, size))
    )
    for _ in range(2):
        reserve.keep(str(tmp_path / "reserve"))
    assert (tmp_path / "reserve").stat().st_size == reserve.SIZE
