"""What the machines of a pool have, asked of all at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import BackendError
from .launch import on_all
from .pool import PoolHost
from .session.connection import Session

CLOCK_SECONDS = 1.0
"""By which the clock of a machine may differ before that is said: lines of a log are merged by it."""
DISK_BYTES = 1 << 30
"""Free, below which that is said."""


class MachineReport(NamedTuple):
    """What one machine has."""

    host: PoolHost
    facts: dict[str, Any]
    """As `on_host.facts` tells them, with `clock`: by how many seconds it is ahead; empty if it cannot be reached."""
    missing: tuple[str, ...]
    """What jobs would miss there, each in words."""


def survey(machines: Sequence[PoolHost]) -> list[MachineReport]:
    """A report on each machine, in their order."""
    found: list[MachineReport] = on_all(_report, machines)
    return found


def _report(host: PoolHost) -> MachineReport:
    try:
        session = Session(host)
    except BackendError as error:
        return MachineReport(host, {}, (str(error),))
    try:
        asked = time.time()
        facts = session.ask("facts")
        answered = time.time()
    except BackendError as error:
        return MachineReport(host, {}, (str(error),))
    finally:
        session.close()
    # The machine has looked at its clock somewhere between the two.
    facts["clock"] = facts["time"] - min(max(facts["time"], asked), answered)
    return MachineReport(host, facts, tuple(_missing(facts)))


def _missing(facts: dict[str, Any]) -> list[str]:
    lacks = {
        "no mpirun on PATH, which MPI worlds need": not facts["mpi"],
        f"its clock differs by {facts['clock']:+.1f} s": abs(facts["clock"]) > CLOCK_SECONDS,
        "less than 1 GiB of disk is free": facts["disk"] < DISK_BYTES,
        "other machines cannot reach it at a loopback address": facts["address"].startswith("127."),
    }
    return [what for what, is_so in lacks.items() if is_so]
