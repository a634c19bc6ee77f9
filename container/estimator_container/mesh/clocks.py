"""How far the clocks of other hosts are from that of the first one, found by questions and answers through the mesh.

The answer with the shortest way there and back counts: its host's clock was read about in the middle of that, so the
offset is known to within half of it (RFC 5905, section 8, with one clock that is right by definition).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence

from ..runtime import private_folder

QUESTIONS = 8  # to each host, one after the answer to the other


class ClockOffsets:
    """Of the hosts that answer; written to a file after each round."""

    def __init__(self, hosts: Sequence[str], path: str, ask: Callable[[str, str], object]) -> None:
        """`ask` sends a host a question, whose words its answer repeats."""
        self._path = path
        self._ask = ask
        self._left = dict.fromkeys(hosts, QUESTIONS - 1)
        self._best: dict[str, tuple[int, float]] = {}
        """The time there and back, and the offset, in nanoseconds."""

    def begin(self) -> None:
        """Ask all of them."""
        for host in self._left:
            self._ask(host, str(time.time_ns()))

    def answered(self, host: str, asked: str, read: str) -> None:
        """One says what its clock was when it got a question."""
        now = time.time_ns()
        way = now - int(asked)
        offset = int(read) - (int(asked) + now) / 2
        self._best[host] = min(self._best.get(host, (way, offset)), (way, offset))
        if self._left.get(host, 0) > 0:
            self._left[host] -= 1
            self._ask(host, str(time.time_ns()))
        else:
            self._write()

    def _write(self) -> None:
        found = {host: {"offset": offset / 1e9, "within": way / 2e9} for host, (way, offset) in self._best.items()}
        with contextlib.suppress(OSError):  # on a full disk
            private_folder.make_below(os.path.dirname(self._path))
            private_folder.replace(self._path, json.dumps(found))
