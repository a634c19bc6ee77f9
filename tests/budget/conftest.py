"""How a test hands in what it has counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import budget

Keep = Callable[..., None]


@pytest.fixture
def keep_to_budget(request) -> Keep:
    """Fails where counts are not within the entry of that name; with `--write-budget` they become it."""

    def check(name: str, counts: budget.Counts, slack: float = 0.0) -> None:
        if request.config.getoption("--write-budget"):
            budget.write(name, counts, slack)
        else:
            wrong = budget.judge(name, counts, budget.read().get(name))
            assert wrong is None, wrong

    return check


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What other jobs do meanwhile would be counted too."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.alone)
