"""Lets the toolkit read PyTorch's flight recorder in a rank whose script has switched that on.

The recorder keeps the last collectives of each process group, and only the process itself can read it. While a rank
stands still its first thread calls nothing, so the thread answers that tells where all threads are.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .own_stacks import OwnStacks

ANSWER = ".flight"  # what follows the pid in the name of the file with the answer
SWITCHES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
"""Either is the number of collectives to keep; the second is its older name (PyTorch, FlightRecorder.hpp)."""
FACTS = ("group", "number", "name", "state")
"""Of a collective: which process group, which of its collectives, what it is called, and how far it is."""
MOST_GROUPS = 8


def tell_beside(own_stacks: OwnStacks) -> None:
    """Tell of the collectives, too, when the toolkit asks; nothing happens where the recorder is off."""
    if any(os.environ.get(name, "0") not in ("", "0") for name in SWITCHES):
        own_stacks.besides.append(lambda: _write_down(own_stacks.path + ANSWER))


def _write_down(path: str) -> None:
    with open(path + ".new", "w", encoding="utf-8", opener=_private) as file:
        json.dump(last_collectives(), file)
    os.rename(path + ".new", path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def last_collectives() -> list[dict[str, object]]:
    """The last collective of each process group: its FACTS."""
    # Not by an import, which would wait for one that is under way.
    c10d: Any = sys.modules.get("torch._C._distributed_c10d")
    try:
        recorded = json.loads(c10d._dump_fr_trace_json(True, False))["entries"]
    except (AttributeError, ValueError, KeyError):
        return []  # it is not loaded yet, or is another version of PyTorch
    last = {entry["process_group"][-1]: entry for entry in recorded}
    return [
        {
            "group": group,
            "number": entry["collective_seq_id"],
            "name": entry["profiling_name"],
            "state": "completed" if entry["retired"] else entry["state"],
        }
        for group, entry in list(last.items())[-MOST_GROUPS:]
    ]
