"""What Slurm gave a job, and what becomes of the job when Slurm takes that back."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from typing import NamedTuple

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ...errors import BackendError
from ..supervised.supervisor.surroundings import Interruption
from . import queue


class Node(NamedTuple):
    """A node of the allocation."""

    name: str
    address: str
    """An IP address at which the others reach it."""
    machine: str
    """The name of the machine that it is on; some clusters have several nodes on one."""


class SlurmAllocation:
    """What Slurm gave: see `Surroundings`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is what Slurm has given the job, with what it was submitted with."""
        self.environment = environment
        self.number = int(os.environ["SLURM_JOB_ID"])
        self.is_interrupted = False
        self._starts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        self._nodes: list[Node] = []

    interrupted_by = (signal.SIGTERM,)

    @property
    def nodes(self) -> list[Node]:
        """The nodes, the one that this process runs on first. Raises BackendError."""
        if not self._nodes:
            here = os.environ["SLURMD_NODENAME"]
            found = map(_node, queue.node_facts(os.environ["SLURM_JOB_NODELIST"]))
            self._nodes = sorted(found, key=lambda node: node.name != here)
        return self._nodes

    def interrupt(self) -> None:
        """Slurm's signal has come: the ranks have it too, so hosts are told a moment later."""
        self.is_interrupted = True

    def interruption(self) -> Interruption:
        """Asked of Slurm, whose signal alone says nothing of its reason."""
        job = f"job {self.number} of Slurm"
        try:
            (line,) = queue.ask("scontrol", "--oneliner", "show", "job", str(self.number)).splitlines()
        except (BackendError, ValueError):
            line = ""
        known = queue.facts(line)
        if int(known.get("Restarts", "0")) > self._starts or known.get("JobState") in ("PENDING", "REQUEUED"):
            return Interruption(f"{job} was taken off its nodes, and is in the queue again", comes_again=True)
        if known.get("Reason") == "TimeLimit" or known.get("JobState") == "TIMEOUT":
            return Interruption(f"{job} reached Slurm's time limit")
        if known.get("JobState") == "PREEMPTED":
            what = f"{job} was preempted, and may not be started again"
            return Interruption(what, verdict=Verdict(Kind.PREEMPTED, f"{what}; ask for slurm={{'requeue': True}}"))
        return Interruption(f"{job} was cancelled")


def _node(known: dict[str, str]) -> Node:
    name = known["NodeName"]
    address = known.get("NodeAddr", name)
    return Node(name, socket.gethostbyname(address), known.get("NodeHostName", name))
