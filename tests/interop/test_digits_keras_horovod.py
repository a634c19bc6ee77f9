"""The Keras + Horovod example, as a user runs it: through `fit()`, on hosts that are processes, and on containers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.restore import newest_whole_manifest, restore
from estimator_container.storage import open_store

from estimator_sdk import Job, JobFailed, TensorFlow
from tests.conformance.jobs import events, kill_host
from tests.waiting import SECONDS, wait_for

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def train(
    backend: str = "process",
    *,
    hosts: int = 2,
    wait: bool = True,
    checkpoint_s3_uri: str | None = None,
    **hyperparameters: object,
) -> Job:
    return TensorFlow(
        framework_version="2.21",
        backend=backend,
        entry_point="digits_keras_horovod.py",
        source_dir=ENTRYPOINTS,
        instance_count=hosts,
        distribution={"mpi": {"enabled": True}},
        hyperparameters=hyperparameters,
        checkpoint_s3_uri=checkpoint_s3_uri,
        metric_definitions=[{"Name": "accuracy", "Regex": "test_accuracy: ([0-9.]+)"}],
    ).fit(wait=wait, logs="none")


def lines(job: Job) -> list[str]:
    return [line.data.decode().rstrip("\n") for line in job.logs(rank=0, stream="stdout")]


def newest_epoch(uri: str) -> int:
    """That whose checkpoint is in the newest snapshot of a store; 0 if there is none."""
    manifest = newest_whole_manifest(open_store(uri))
    names = [Path(file.path) for file in manifest.files] if manifest is not None else []
    return max((int(path.stem.partition("-")[2]) for path in names if path.match("epoch-*.keras")), default=0)


def test_killed_in_mid_epoch_it_goes_on_in_a_larger_world_on_the_other_backend_and_learns(tmp_path):
    """From its last snapshot; and the model loads with plain Keras."""
    uri = f"file://{tmp_path / 'store'}"
    begun = train("process", wait=False, checkpoint_s3_uri=uri, epochs=1000)
    wait_for(lambda: newest_epoch(uri) >= 2 or begun.status != "InProgress", 2 * SECONDS, begun.why)
    kill_host(begun, "algo-1")
    with pytest.raises(JobFailed, match="algo-1"):
        begun.wait(SECONDS)
    # The host may have been killed as it wrote a checkpoint, which is then the only one that is missed.
    missed = r"\d+ bytes of .* may be incomplete: \.unfinished-epoch-\d+\.keras"
    assert re.fullmatch(f"({missed})?", begun.reason), begun.reason
    assert lines(begun)[0] == "training on 1438 images with 2 ranks"
    kept = tmp_path / "kept"
    restored = restore(open_store(uri), str(kept))
    assert restored.base == max(event["snapshot"] for event in events(begun, "checkpoint_published"))
    done = max(int(path.stem.partition("-")[2]) for path in kept.glob("epoch-*.keras"))
    assert done >= 2

    last = done + 8
    job = train("docker", hosts=3, checkpoint_s3_uri=uri, epochs=last)
    said = lines(job)
    assert f"resuming after epoch {done} from /opt/ml/checkpoints/epoch-{done:04d}.keras" in said
    epochs = [int(match[1]) for line in said if (match := re.match(rf"epoch (\d+)/{last} ", line))]
    assert epochs == list(range(done + 1, last + 1))
    assert "weights agree on all 3 ranks" in said
    (accuracy,) = job.metrics()
    assert (accuracy.name, accuracy.rank) == ("accuracy", 0) and accuracy.value > 0.95
    # Only rank 0 speaks and writes.
    assert [line for rank in (1, 2) for line in job.logs(rank=rank, stream="stdout")] == []
    assert not list((job.folder / "hosts" / "algo-2" / "model").iterdir())
    model = job.download(tmp_path) / "model.keras"
    load = "import keras, sys; model = keras.models.load_model(sys.argv[1]); print(type(model.optimizer).__name__)"
    loaded = subprocess.run([sys.executable, "-c", load, str(model)], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "Adam"


@pytest.mark.long
def test_on_containers_nothing_changes_but_the_backend(tmp_path):
    folder = tmp_path / "checkpoints"
    jobs = {"process": train(epochs=2, **{"checkpoint-dir": str(folder)}), "docker": train("docker", epochs=2)}
    assert sorted(path.name for path in folder.iterdir()) == ["epoch-0001.keras", "epoch-0002.keras"]
    said = {backend: [re.split(r"(\d+\.\d+)", line) for line in lines(job)] for backend, job in jobs.items()}
    models = {
        backend: {path.name for path in job.download(tmp_path / backend).iterdir()} for backend, job in jobs.items()
    }
    assert models["docker"] == models["process"] == {"model.keras"}
    # Word for word the same; the numbers as far as the order of floating-point sums lets them be.
    assert len(said["docker"]) == len(said["process"])
    for there, here in zip(said["docker"], said["process"], strict=True):
        assert there[::2] == here[::2]
        assert [float(number) for number in there[1::2]] == pytest.approx(
            [float(each) for each in here[1::2]], abs=5e-3
        )
