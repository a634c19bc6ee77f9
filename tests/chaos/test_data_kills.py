"""Each sample once, whatever befalls a job; `python -m tests.chaos.data_kills` kills as often as it is told."""

from __future__ import annotations

import pytest

from . import data_kills
from .playing import own_folders

pytestmark = pytest.mark.usefixtures("environment_as_before")
SEED = 20261126


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kind", "workers", "kills"),
    [
        ("file", 0, 3),
        pytest.param("file", 0, 200, marks=pytest.mark.long),
        pytest.param("file", 2, 200, marks=pytest.mark.long),
        pytest.param("localstack", 0, 100, marks=pytest.mark.long),
        pytest.param("localstack", 2, 100, marks=pytest.mark.long),
    ],
)
def test_kills_leave_each_sample_once(request, monkeypatch, no_aws, kind, workers, kills):
    print(f"seed {SEED}")
    with own_folders() as folder:
        uri = f"file://{folder}/store"
        if kind != "file":
            uri = data_kills.place_in(request.getfixturevalue(f"{kind}_server"))
        data_kills.make_shards(uri)
        job = data_kills.train(uri, kills, workers, SEED)
        assert data_kills.problems(job, kills, folder / "model") == []
        # So that the line above can fail: one sample more than there is.
        monkeypatch.setattr(data_kills, "SIZES", (*data_kills.SIZES, 1))
        found = data_kills.problems(job, kills, folder / "again")
        assert any("were not there once but so often: {66: 0}" in problem for problem in found)
