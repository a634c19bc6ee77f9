"""Room for the last word, on a disk that fills up."""

import pytest
from estimator_container import reserve


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
