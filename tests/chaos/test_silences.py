"""R4 for as long as it takes; `python -m tests.chaos.silences` does it for other times."""

from __future__ import annotations

import pytest

from .silences import accused

SEED = 20261124


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_in_two_hours_of_jobs_with_long_silences_none_is_accused():
    print(f"seed {SEED}")
    assert accused(jobs=8, minutes=15.0, seed=SEED) == []
