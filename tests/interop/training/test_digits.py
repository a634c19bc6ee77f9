"""The digits example, whose steps are so short that half of an epoch is input, until what is advised is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from estimator_sdk import Estimator
from estimator_sdk.cli.main import main

ENTRYPOINTS = Path(__file__).parents[3] / "entrypoints"
SCRIPT = "digits_keras_horovod.py"
UNTOUCHED, LEFT, WRONG = 0.30, 0.10, 0.20
"""How much of its rate it loses to input as it is, and with advice; and how far off what is predicted may be."""


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def said_by(*arguments: str) -> list[bytes]:
    """What rank 0 of two says of each epoch and of the test: losses and accuracies to four digits."""
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    given = ["--epochs", "3", *arguments]
    job = Estimator(
        entry_point=SCRIPT, source_dir=ENTRYPOINTS, distribution=mpi, backend="process", arguments=given
    ).fit(logs="none")
    return [line.data for line in job.logs(rank=0, stream="stdout")]


@pytest.mark.long
def test_images_that_are_kept_are_trained_on_in_the_same_order():
    said = said_by()
    assert any(line.startswith(b"epoch 3/3") for line in said)
    assert said_by("--keep") == said


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_with_one_iterator_for_all_epochs_little_is_lost(ranks, capfd):
    world = ["--distributed", "1", "--processes-per-host", str(ranks)]
    words = ["--source-dir", str(ENTRYPOINTS), "--rounds", "2", "--seconds", "5", "--try"]
    assert main(["doctor", "run", "--json", *world, *words, "--", "python", SCRIPT, "--epochs", "1000000"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["gaps"]["replayed"]["share"] >= UNTOUCHED
    tried = next(tried for tried in document["tried"] if "go-on" in tried["words"])
    assert tried["helps"]
    assert tried["predicted"] == pytest.approx(tried["verified"]["gain"], rel=WRONG)
    assert 1 - max(tried["rates"]) / min(document["rates"]["replayed"]) <= LEFT
