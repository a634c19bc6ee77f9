"""Lets the toolkit read PyTorch's flight recorder in a rank whose script has switched that on.

The recorder keeps the last collectives of each process group, and only the process itself can read it. While a rank
stands still its first thread calls nothing, so another one answers, which waits at a FIFO.
"""

from __future__ import annotations

import json
import os
import threading

ASKED, ANSWER = ".ask", ".flight"  # what follows the pid in the names of the FIFO, and of the file with the answer
SWITCHES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
"""Either is the number of collectives to keep; the second is its older name (PyTorch, FlightRecorder.hpp)."""
FACTS = ("group", "number", "name", "state")
"""Of a collective: which process group, which of its collectives, what it is called, and how far it is."""
MOST_GROUPS = 8


def answer_in(folder: str) -> None:
    """Answer from now on what the toolkit asks in that folder; nothing happens where the recorder is off."""
    if not any(os.environ.get(name, "0") not in ("", "0") for name in SWITCHES):
        return
    path = os.path.join(folder, str(os.getpid()))
    os.mkfifo(path + ASKED, 0o600)
    fd = os.open(path + ASKED, os.O_RDWR | os.O_CLOEXEC)  # for both, so that there is no end of it
    threading.Thread(target=_answer, args=(fd, path + ANSWER), daemon=True).start()


def _answer(fd: int, path: str) -> None:
    while os.read(fd, 1):
        with open(path + ".new", "w", encoding="utf-8", opener=_private) as file:
            json.dump(last_collectives(), file)
        os.rename(path + ".new", path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def last_collectives() -> list[dict[str, object]]:
    """The last collective of each process group: its FACTS."""
    from torch._C import _distributed_c10d as c10d

    try:
        recorded = json.loads(c10d._dump_fr_trace_json(True, False))["entries"]
    except (AttributeError, ValueError, KeyError):
        return []  # of another version of PyTorch
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
