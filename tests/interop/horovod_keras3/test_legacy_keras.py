"""`TF_USE_LEGACY_KERAS=1` chooses Keras 2 on a TensorFlow of today: Horovod's own names are right there."""

from __future__ import annotations

from pathlib import Path

from estimator_sdk import Estimator

SCRIPT = Path(__file__).parent / "train_legacy_keras.py"
KERAS_2 = Path(__file__).parents[3] / ".venv-keras-2"


def test_a_script_of_keras_2_trains_one_model_on_all_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))
    job = Estimator(
        entry_point=SCRIPT,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        environment={"TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": str(KERAS_2)},
    ).fit(logs="none")
    said = [line.data for line in job.logs(rank=0, stream="stdout")]
    assert said == [b"trained 2 1\n"]
