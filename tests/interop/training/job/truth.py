"""What a script that is slow on purpose says of itself: the seconds that it has spent on what, after its first step."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

spent: Counter[str] = Counter()
_began = 0.0


def sleep(kind: str, seconds: float) -> None:
    """Spend them on something, using no CPU."""
    with spending(kind):
        time.sleep(seconds)


def spin(seconds: float) -> None:
    """Compute for so long, by the clock."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@contextmanager
def spending(kind: str) -> Iterator[None]:
    """What is done within it is spent on something."""
    began = time.monotonic()
    yield
    spent[kind] += time.monotonic() - began


def first_step_ended() -> None:
    """From now on it counts."""
    global _began
    spent.clear()
    _began = time.monotonic()


def tell() -> None:
    """Say the share of each, as one line."""
    whole = time.monotonic() - _began
    print("truth", json.dumps({kind: seconds / whole for kind, seconds in spent.items()}), flush=True)
