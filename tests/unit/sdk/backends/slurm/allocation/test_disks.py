"""What the supervisor hears of the disks of nodes."""

from __future__ import annotations

import json
import os

from estimator_sdk.backends.slurm.allocation import keeper
from estimator_sdk.backends.slurm.allocation.disks import _Disk


def test_what_a_prolog_prints_is_nothing_that_the_program_says():
    """Slurm puts it before what the program prints, to the same output."""
    disk = _Disk.__new__(_Disk)
    disk._output, writes = os.pipe()
    disk._said, disk.place, disk.is_ready, disk.failed = b"", "", False, None
    said = [[keeper.AT, "/scratch/7"], [keeper.READY, ""]]
    lines = ["Welcome to n1", "7", '["a"]', '"ab"', json.dumps(said[0]), "", json.dumps(said[1])]
    os.write(writes, "".join(f"{line}\n" for line in lines).encode())
    os.close(writes)
    disk._hear()
    os.close(disk._output)
    assert (disk.place, disk.is_ready, disk.failed) == ("/scratch/7", True, None)
