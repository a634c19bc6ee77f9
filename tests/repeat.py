"""Run tests again and again on a machine that is busy, to find those that fail now and then.

python -m tests.repeat ROUNDS PATH…    # options of pytest may follow

Two processes keep the CPUs busy meanwhile. The first round that fails is the last: no test is ever tried again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.shared_engine import run

BUSY = 2
"""Processes that compute for as long as the rounds go on."""

COMPUTES = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    sum(range(1_000_000))
"""
"""It looks for its parent each time: a signal at the parent's death is lost when that comes before it is asked for."""


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep so many CPUs busy; what does that ends with the block, and with this process however that ends."""
    command = [sys.executable, "-I", "-S", "-c", COMPUTES, str(os.getpid())]
    started = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def main(rounds: str, *words: str) -> int:
    if not rounds.isdecimal() or int(rounds) == 0 or not words:
        print("usage: scripts/test --repeat ROUNDS PATH…, with at least one round and one path", file=sys.stderr)
        return 2
    with load(BUSY):
        for number in range(1, int(rounds) + 1):
            print(f"\n== round {number} of {rounds}", flush=True)
            if code := run([sys.executable, "-m", "pytest", "-q", *words]):
                print(f"\nround {number} of {rounds} failed", file=sys.stderr)
                return code
    print(f"\nall {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*(sys.argv[1:] or [""])))
    except KeyboardInterrupt:
        sys.exit(130)
