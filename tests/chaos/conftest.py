"""What tests of chaos share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture
def environment_as_before() -> Iterator[None]:
    """Takes back what a test does to the variables of its process."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
