"""What the doctor says of scripts that are slow on purpose, beside what they say of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import benchmarks.scenes
from estimator_sdk import Estimator, Job, PyTorch
from estimator_sdk.cli.main import main

JOB = Path(__file__).parent / "job"
SCENES = Path(benchmarks.scenes.__file__).parent / "scripts"
WAYS = ("input", "slow rank", "checkpoint", "idle", "nothing")
POINTS = 0.05


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def train(entry_point: str, *arguments: object, kind=Estimator, **where: object) -> Job:
    return kind(
        entry_point=entry_point,
        source_dir=JOB,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        arguments=list(map(str, arguments)) or None,
        **where,
    ).fit(logs="none")


def check_shares(job: Job, *kinds: str) -> None:
    """Those of the doctor are those that the script has measured itself."""
    found = job.diagnose()
    assert [rank.rank for rank in found.ranks] == [0, 1]
    for rank in found.ranks:
        (told,) = (line.data for line in job.logs(rank=rank.rank, stream="stdout") if line.data.startswith(b"truth"))
        truth = json.loads(told.partition(b" ")[2])
        for kind in kinds:
            assert (rank.share(kind) or 0.0) == pytest.approx(truth.get(kind, 0.0), abs=POINTS), (rank, truth)


@pytest.mark.alone
def test_a_loop_that_says_what_it_waits_for_is_told_which_rank_is_slow_and_why(capfd):
    job = train("slow_loop.py", backend="process")
    check_shares(job, "input", "communication", "checkpoint")
    capfd.readouterr()
    assert main(["doctor", job.name, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["thin"] == ""
    (slow,) = (each for each in document["causes"] if each["kind"] == "slow rank")
    assert (slow["host"], slow["rank"]) == ("algo-1", 1)
    assert "waiting for input" in slow["sentence"]
    assert main(["doctor", job.name]) == 0
    said = capfd.readouterr().out
    assert "rank 1 on algo-1 is slow, and the others wait for it" in " ".join(said.lower().split())


def check_scene(job: Job, way: str, share: float) -> None:
    """That the shares are right, and the right cause is named first; on a busy machine ranks wait for CPUs, too."""
    check_shares(job, "input", "checkpoint")  # how long a rank waits for the other one the script does not measure
    found = job.diagnose()
    assert found.thin == ""
    causes = [cause for cause in found.causes if way == "idle" or cause.kind != "too few CPUs"]
    if way == "nothing":
        assert (found.input_class, causes) == ("not input bound", [])
        return
    kinds = {"idle", "too few CPUs"} if way == "idle" else {way}
    assert causes[0].kind in kinds
    assert causes[0].rank == {"slow rank": 1, "checkpoint": 0}.get(way)
    assert causes[0].share >= share - POINTS


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("way", [*WAYS, "communication"])
def test_keras(way, share):
    check_scene(train("slow_keras.py", way, share, backend="process"), way, share)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("way", WAYS)
def test_pytorch(way):
    check_scene(train("slow_torch.py", way, 0.4, kind=PyTorch, framework_version="2.13"), way, 0.4)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(("way", "lost"), [("input", 0.4), ("nothing", 0.0)])
def test_runs_with_the_first_batch_replayed_show_what_input_costs(way, lost, capfd):
    words = ["--distributed", "1", "--processes-per-host", "2", "--source-dir", str(JOB), "--rounds", "2"]
    command = ["python", "slow_keras.py", way, "0.4"]
    assert main(["doctor", "run", "--json", *words, "--seconds", "4", "--", *command]) == 0
    document = json.loads(capfd.readouterr().out)
    gap = document["gaps"]["replayed"]
    assert gap["share"] == pytest.approx(lost, abs=POINTS)
    assert {name: len(rates) for name, rates in document["rates"].items()} == {"real": 2, "replayed": 2, "one_rank": 2}
    assert document["real"]["input_class"] == ("highly input bound" if lost else "not input bound")


def run_and_try(capfd, folder: Path, computing: int, decoding: int) -> dict[str, Any]:
    """What the doctor says of a script that computes and decodes for so many milliseconds in a step."""
    script = ["python", "reads.py", "--truth", str(folder), "--cause", "decode", "--steps", "2000"]
    script += ["--computing-ms", str(computing), "--cause-ms", str(decoding)]
    words = ["--source-dir", str(SCENES), "--rounds", "2", "--seconds", "4", "--try"]
    capfd.readouterr()
    assert main(["doctor", "run", "--json", *words, "--", *script]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.long
@pytest.mark.alone
def test_advice_is_tried_and_gains_what_was_predicted(tmp_path, capfd):
    document = run_and_try(capfd, tmp_path, 30, 20)
    assert document["gaps"]["replayed"]["share"] == pytest.approx(0.4, abs=POINTS)
    assert document["input"]["cause"] == "decoding"
    assert "time.sleep(milliseconds / 8000)" in document["input"]["place"]
    (tried,) = document["tried"]
    assert tried["words"] == ["prefetch=4"]
    assert tried["predicted"] == pytest.approx(50 / 30, rel=0.2)
    assert tried["verified"]["gain"] == pytest.approx(tried["predicted"], rel=0.3)


@pytest.mark.long
@pytest.mark.alone
def test_where_nothing_is_to_be_gained_nothing_helps(tmp_path, capfd):
    document = run_and_try(capfd, tmp_path, 40, 0)
    assert document["gaps"]["replayed"]["least"] <= 0.02  # by all rates it would be more, if there were anything
    assert [tried for tried in document["tried"] if tried["helps"]] == []
