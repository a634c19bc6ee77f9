"""A script with `hvd.elastic` and PyTorch, as Horovod's example has it, in a world whose size is fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import PyTorch

SCRIPT = """
import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
inputs = torch.arange(24.0).reshape(8, 3)
sampler = hvd.elastic.ElasticSampler(torch.utils.data.TensorDataset(inputs), shuffle=False)
calls = []


@hvd.elastic.run
def train(state):
    calls.append(1)
    for state.epoch in range(state.epoch, 3):
        for number, index in enumerate(sampler):
            optimizer.zero_grad()
            (model(inputs[index]) ** 2).sum().backward()
            optimizer.step()
            sampler.record_batch(number, 1)
            state.commit()
        sampler.set_epoch(state.epoch + 1)


state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=hvd.rank())
train(state)
kept = model.weight.detach().clone()
with torch.no_grad():
    model.weight.zero_()
state.restore()
weights = hvd.allgather_object(kept.tolist())
print(len(calls), state.epoch, all(each == weights[0] for each in weights), torch.equal(model.weight, kept))
"""


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def test_the_function_runs_once_and_its_state_is_that_of_rank_0(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    world = {"mpi": {"enabled": True, "processes_per_host": 2}}
    job = PyTorch(framework_version="2.13", entry_point=script, distribution=world).fit(logs="none")
    assert [line.data for line in job.logs(stream="stdout")] == [b"1 2 True True\n"] * 2
    said = [line for line in job.logs(stream="stderr") if b"hvd.elastic.run calls train() once" in line.data]
    assert [line.rank for line in said] == [0]
