"""One rank that writes a checkpoint every few steps to a slow disk."""

from __future__ import annotations

import io
import time

import torch
from truth import Truth, arguments, compute


class SlowDisk(io.BytesIO):
    """A file that takes a while for what is written."""

    seconds_per_byte = 0.0

    def write(self, data: bytes | memoryview) -> int:
        """Write, and wait for the disk."""
        time.sleep(memoryview(data).nbytes * self.seconds_per_byte)
        return super().write(data)


def main() -> None:
    """Train, and save every fifth step."""
    given = arguments().parse_args()
    torch.set_num_threads(1)
    truth, model = Truth(given.truth, 0), torch.nn.Linear(256, 1024)
    SlowDisk.seconds_per_byte = 5 * given.cause_ms / 1000 / (257 * 1024 * 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for number in range(given.steps + 1):
        model(torch.ones(256)).sum().backward()
        compute(given.computing_ms)
        optimizer.step()
        optimizer.zero_grad()
        truth.step()
        if number % 5 == 4:
            with truth.injected():
                torch.save(model.state_dict(), SlowDisk())
    truth.write()


main()
