"""`Dataset` behind PyTorch's DataLoader: each sample once, with workers, in a job whose rank is killed."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from estimator_sdk import PyTorch
from tests.unit.container.training.data.folders import NUMBERS, numbered

SCRIPT = """
import json, os, signal
from pathlib import Path

import torch
import torch.distributed as dist
from estimator_container.data import Dataset
from estimator_container.data.for_torch import TorchBatches
from torch.utils.data import DataLoader


def number(sample):
    return int(sample["txt"])


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
folder = Path(os.environ["SM_CHECKPOINT_DIR"])
data = Dataset("train", batch_size=2, seed=7, together=2, decode=number, collate=torch.tensor)
loader = DataLoader(TorchBatches(data), batch_size=None, num_workers=3)
seen = []
found = sorted(folder.glob("step-*.json"))
if found:
    kept = json.loads(found[-1].read_text())
    data.load_state_dict(kept["data"])
    seen = kept["seen"]
steps = 0
for epoch in data.epochs(3):
    for batch in data.counted(loader):
        every = [None] * world
        dist.all_gather_object(every, batch.tolist())
        seen += [[epoch, each] for each in every]
        steps += 1
        if rank == 0 and steps % 2 == 0:
            (folder / ".draft").write_text(json.dumps({"data": data.state_dict(), "seen": seen}))
            (folder / ".draft").rename(folder / f"step-{len(seen):06}.json")
        if steps == 5 and rank == int(os.environ["TORCHELASTIC_RESTART_COUNT"]):
            os.kill(os.getpid(), signal.SIGKILL)
if rank == 0:
    Path(os.environ["SM_MODEL_DIR"], "seen.json").write_text(json.dumps(seen))
dist.monitored_barrier()  # no thread of Gloo is at work when the interpreter ends
dist.destroy_process_group()
"""


@pytest.mark.long
def test_each_sample_is_there_once_with_workers_and_kills(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text(SCRIPT)
    job = PyTorch(
        framework_version="2.13",
        entry_point=str(tmp_path / "train.py"),
        distribution={"torch_distributed": {"enabled": True, "processes_per_host": 2}},
        checkpoint_s3_uri=f"file://{tmp_path / 'store'}",
        restart_policy={"on": ["signal"], "max": 5},
    ).fit({"train": f"file://{numbered(tmp_path / 'shards')}"}, logs="none")
    assert len(job.attempts) == 3
    seen = json.loads((job.download(tmp_path / "model") / "seen.json").read_text())
    for epoch in range(3):
        assert Counter(each for number, batch in seen if number == epoch for each in batch) == Counter(NUMBERS)
