"""The photos example, which waits for its input until what the doctor advises is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from estimator_sdk.cli.main import main

ENTRYPOINTS = Path(__file__).parents[3] / "entrypoints"
UNTOUCHED, LEFT = 0.30, 0.02
"""How much of its rate the example loses to input at least as it is, and at most with advice, which is also what of a
step may wait for input then."""


def run_and_try(capfd, ranks: int, rounds: int, *command: str) -> dict:
    """What the doctor says of a script on so many ranks."""
    world = ["--distributed", "1", "--processes-per-host", str(ranks)]
    words = ["--source-dir", str(ENTRYPOINTS), "--rounds", str(rounds), "--seconds", "6", "--try"]
    capfd.readouterr()
    assert main(["doctor", "run", "--json", *world, *words, "--", "python", *command]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(("ranks", "rounds"), [(1, 2), (2, 2), (4, 1), (8, 1)])
def test_photos_are_waited_for_until_they_are_kept(ranks, rounds, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    document = run_and_try(capfd, ranks, rounds, "photos_keras_horovod.py", "--epochs", "100000")
    assert document["gaps"]["replayed"]["share"] >= UNTOUCHED
    kept = next(tried for tried in document["tried"] if "keep" in tried["words"])
    assert kept["helps"]
    assert kept["input"] <= LEFT
    if rounds > 1:  # or nothing is known of how much the rates of runs that are alike differ
        assert 1 - max(kept["rates"]) / min(document["rates"]["replayed"]) <= LEFT
