"""The pool that the tests of the backend `ssh` share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def in_pool(ssh_pool: object) -> None:
    """Every test here sees the pool, as somebody does whose configuration of ssh names its machines."""
