"""A supervisor whose job Slurm has started again elsewhere writes nothing more."""

from __future__ import annotations

import pytest

from estimator_sdk.backends.slurm.allocation.start_hold import StartHold
from estimator_sdk.backends.slurm.files import SlurmFolder
from estimator_sdk.backends.supervised.job_folder.hold import NotOurs


def test_the_newest_start_has_the_folder(tmp_path):
    folder = SlurmFolder(tmp_path)
    first, second = StartHold(folder, 0), StartHold(folder, 1)
    first.take()
    first.check()
    second.take()
    second.check()
    for lost in (first.check, first.take):
        with pytest.raises(NotOurs, match="again, elsewhere"):
            lost()
    assert folder.read_start() == 1


def test_a_folder_that_is_gone_is_nobodys(tmp_path):
    folder = SlurmFolder(tmp_path / "job")
    folder.path.mkdir()
    hold = StartHold(folder, 0)
    folder.path.rmdir()
    with pytest.raises(NotOurs, match="was removed"):
        hold.check()
