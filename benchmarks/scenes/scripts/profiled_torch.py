"""One rank with a DataLoader that spends time on one thing, and what PyTorch's profiler says of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from estimator_container.training import checkpointing, communicating
from torch.utils.data import DataLoader, Dataset
from truth import Truth, arguments, compute, told_by_profiler

WAITING = {"checkpoint": checkpointing, "allreduce": communicating}
LEAST_SHARE = 0.05
"""From which share of a step on PyTorch's page in TensorBoard calls loading a high cost (`torch_tb_profiler` 0.4.3)."""


class Photos(Dataset[torch.Tensor]):
    """Samples that take a while to decode."""

    def __init__(self, batches: int, milliseconds: float) -> None:
        self._samples, self._seconds = 8 * batches, milliseconds / 8000

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, number: int) -> torch.Tensor:
        if self._seconds:
            time.sleep(self._seconds)
        return torch.full((16,), float(number))


@contextlib.contextmanager
def profiler(is_on: bool, folder: Path) -> Iterator[torch.profiler.profile | None]:
    """Record what is done in here, and write down which share of the steps is loading, by the profiler's names."""
    if not is_on:
        yield None
        return
    all_steps = torch.profiler.schedule(wait=0, warmup=1, active=1 << 20)  # only with one it marks the steps
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=all_steps) as recording:
        yield recording
    events = recording.events()
    steps = sum(each.time_range.elapsed_us() for each in events if each.name.startswith("ProfilerStep"))
    loading = sum(each.time_range.elapsed_us() for each in events if each.name.startswith("enumerate(DataLoader)"))
    share = loading / steps
    is_high = share > LEAST_SHARE
    told_by_profiler(folder, f"{'a high' if is_high else 'no high'} cost of loading: {100 * share:.1f} % of a step")


def main() -> None:
    """Train a small layer, step by step."""
    parser = arguments()
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    truth, model = Truth(given.truth, 0), torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    photos = Photos(given.steps + 1, given.cause_ms if given.cause == "decode" else 0)
    batches = iter(DataLoader(photos, batch_size=8))
    with profiler(given.profile, given.truth) as recording:
        for _ in range(given.steps + 1):
            with truth.injected() if given.cause == "decode" else contextlib.nullcontext():
                batch = next(batches)
            model(batch / 1e4).square().mean().backward()
            compute(given.computing_ms)
            if given.cause in WAITING:
                with WAITING[given.cause](), truth.injected():
                    time.sleep(given.cause_ms / 1000)
            optimizer.step()
            optimizer.zero_grad()
            if recording is not None:
                recording.step()
            truth.step()
    truth.write()


main()
