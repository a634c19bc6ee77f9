"""What `estimator data pack` makes, read by a job through a channel in Pipe mode."""

import json

from estimator_sdk import Estimator, TrainingInput
from estimator_sdk.cli.main import main

SCRIPT = """
import json
from estimator_container.data import PipeDataset

train = PipeDataset("train", batch_size=4, decode=lambda sample: [sample["__key__"], sample["txt"].decode()])
print(json.dumps([[sample for batch in train for sample in batch] for _ in train.epochs(2)]))
"""


def test_packed_samples_come_through_a_pipe_in_each_epoch(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    files, script = tmp_path / "files", tmp_path / "train.py"
    files.mkdir()
    for each in range(10):
        (files / f"{each}.txt").write_text(f"text {each}" * 100)
    script.write_text(SCRIPT)
    target = f"file://{tmp_path / 'shards'}"
    assert main(["data", "pack", str(files), target, "--keep-order"]) == 0
    job = Estimator(entry_point=script).fit({"train": TrainingInput(target, input_mode="Pipe")}, logs="none")
    (line,) = job.logs(stream="stdout")
    assert json.loads(line.data) == [[[str(each), f"text {each}" * 100] for each in range(10)]] * 2
