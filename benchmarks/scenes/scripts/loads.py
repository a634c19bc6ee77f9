"""One rank with PyTorch, whose DataLoader decodes each sample slowly, in the script's process or in workers."""

from __future__ import annotations

import time

import torch
from torch.utils.data import DataLoader, Dataset
from truth import Truth, arguments, compute


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


def main() -> None:
    """Train a small layer, waiting for each batch by the clock of the scene too."""
    parser = arguments()
    parser.add_argument("--workers", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    truth, model = Truth(given.truth, 0), torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    photos = Photos(given.steps + 1, given.cause_ms)
    batches = iter(DataLoader(photos, batch_size=8, num_workers=given.workers))
    for _ in range(given.steps + 1):
        with truth.injected():
            batch = next(batches)
        loss = model(batch / 1e4).square().mean()
        loss.backward()
        compute(given.computing_ms)
        optimizer.step()
        optimizer.zero_grad()
        truth.step()
    truth.write()


main()
