"""The cluster that the tests of the backend `slurm` share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def in_slurm(slurm: object) -> None:
    """Every test here sees the cluster, as somebody does who is logged in on one of its machines."""
