"""What is known of a rank that stands still."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

AT_ITS_END = "  its script has ended, and it waits for the other ranks to end theirs\n"
NO_SCRIPT = "  it runs a server of the toolkit's, and no script\n"


class StandingRank(NamedTuple):
    """A rank that has written nothing and has not moved from its line."""

    stack: str
    """Where its Python threads are, the innermost call first, or AT_ITS_END, or NO_SCRIPT."""
    place: str = ""
    """Where the thread that runs the script is, such as `train.py, line 5 in step`."""
    works: bool = False
    """Whether it may work all the same: it uses CPU or wakes up often, and not in a call that waits for other ranks."""
    sleeps: bool = False
    """Whether it waits for nothing but time."""
    call: str = ""
    """The call in which it waits for other ranks, such as `barrier`; empty where it is at anything else."""
    is_collective: bool = False
    """Whether every rank has to take part in that call."""
    spins: bool = False
    """Whether it uses CPU in that call."""
    native: str = ""
    """Where its threads are in native code too, as `py-spy` says; empty where it is not installed, or may not look."""
    collectives: Sequence[Mapping[str, str]] = []
    """The last collective of each process group of PyTorch; see `flight_recorder.last_collectives`."""
    step: int | None = None
    """The number of its last training step; None where it marks none."""
    step_age: float | None = None
    """Seconds since the end of that step."""
    output_age: float | None = None
    """Seconds since its last output; None where there was none."""
    checkpoint_age: float | None = None
    """Seconds since something was last written to the checkpoint folder of its host; None where nothing was."""
    cpu: float = 0.0
    """The share of a CPU that it uses."""
    kernel: Mapping[str, object] = {}
    """See `evidence.summary`."""

    def to_json(self) -> str:
        """As one host tells another."""
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> StandingRank:
        """The way back from `to_json`."""
        return cls(*json.loads(text))
