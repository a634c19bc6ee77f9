"""K2 under kills at random moments; `python -m tests.chaos.checkpoint_kills` does it a thousand times."""

from __future__ import annotations

import pytest

from .checkpoint_kills import Chaos, store

pytestmark = pytest.mark.usefixtures("environment_as_before")
SEED = 20261121


def kill(folder, kind, kills, in_place):
    print(f"seed {SEED}")
    (folder / "server").mkdir()
    with store(kind, folder) as (uri, proxy):
        tally = Chaos(uri, folder, SEED, proxy, in_place).run(kills)
    print(tally)
    assert tally.problems == []
    assert tally.snapshots > 0


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("file", 15),
        ("localstack", 10),
        pytest.param("file", 200, marks=pytest.mark.long),
        pytest.param("localstack", 100, marks=pytest.mark.long),
    ],
)
def test_no_kill_tears_mixes_or_loses_a_snapshot(tmp_path, kind, kills):
    kill(tmp_path, kind, kills, in_place=False)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("file", 30),
        ("localstack", 10),
        pytest.param("file", 1000, marks=pytest.mark.long),
        pytest.param("localstack", 200, marks=pytest.mark.long),
    ],
)
def test_no_kill_that_is_followed_by_a_restart_in_place_tears_mixes_or_loses_a_snapshot(tmp_path, kind, kills):
    kill(tmp_path, kind, kills, in_place=True)
