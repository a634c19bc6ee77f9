from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from estimator_container.runtime.folder_hold import FolderHold


def test_another_folder_or_none_under_the_path_is_not_the_same(tmp_path):
    (tmp_path / "job").mkdir()
    held = FolderHold(str(tmp_path / "job"))
    assert held.is_there()
    (tmp_path / "job").rename(tmp_path / "elsewhere")
    assert not held.is_there()
    (tmp_path / "job").symlink_to("nothing")
    assert not held.is_there()
    (tmp_path / "job").unlink()
    (tmp_path / "job").mkdir()
    assert not held.is_there()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOMEM, errno.ETIMEDOUT])
def test_a_file_system_that_cannot_tell_takes_no_job_its_folder(tmp_path, monkeypatch, number):
    held = FolderHold(str(tmp_path))
    stat = os.stat

    def fails(path: str | int | Path, **options: Any) -> os.stat_result:
        if path == str(tmp_path):
            raise OSError(number, os.strerror(number), path)
        return stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", fails)
        is_there = held.is_there()
    assert is_there
