"""What Slurm gave a job, and what becomes of the job when Slurm takes that back."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ....errors import BackendError
from ....values.home import JobFolder
from ...supervised.supervisor.surroundings import Interruption
from .. import accounting, queue

_STATES_OF_NODES_IN_USE = ("RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED")
ANSWER_SECONDS = 5.0
"""That the controller is asked about a job until it answers: in a preemption, many jobs may want that at once."""
ASK_AGAIN_SECONDS = 0.5
Answer = TypeVar("Answer")
UPDATES = 3
"""How often a change of the job is tried: what interrupts this process may end the program that makes it."""


class Node(NamedTuple):
    """A node of the allocation."""

    name: str
    address: str
    """An IP address at which the others reach it."""
    machine: str
    """The name of the machine that it is on; some clusters have several nodes on one."""


class NodeDisks(Protocol):
    """What nodes have on disks of their own."""

    def on(self, node: Node) -> JobFolder | None:
        """A folder that has the channels of a node as that of a job has its own; None where they are not there."""

    def close(self) -> None:
        """Have all of it removed, and wait for that."""


class SlurmAllocation:
    """What Slurm gave: see `Surroundings`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is what Slurm has given the job, with what it was submitted with."""
        self.environment = environment
        self.number = int(os.environ["SLURM_JOB_ID"])
        self.is_interrupted = False
        self.disks: NodeDisks | None = None
        """What the nodes have on disks of their own, where the job has channels there."""
        self._starts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        self._nodes: list[Node] = []
        self._lost: set[str] = set()
        """The names of nodes that turned out to be gone."""

    interrupted_by = (signal.SIGTERM,)

    @property
    def nodes(self) -> list[Node]:
        """Those that are not known to be gone, the one that this process runs on first. Raises BackendError."""
        if not self._nodes:
            here = os.environ["SLURMD_NODENAME"]
            found = map(_node, _answer(lambda: queue.node_facts(os.environ["SLURM_JOB_NODELIST"])))
            self._nodes = sorted(found, key=lambda node: node.name != here)
        return [node for node in self._nodes if node.name not in self._lost]

    def lose(self, node: Node) -> None:
        """Neither use a node any more, nor have the job started there again."""
        self._lost.add(node.name)

    def release(self, node: Node, folder: Path) -> None:
        """Give a node back that is gone, or Slurm would end the job once it knows; `folder` takes what it says."""
        self.lose(node)
        left = ",".join(each.name for each in self.nodes)
        with suppress(BackendError):
            queue.ask("scontrol", "update", f"JobId={self.number}", f"NodeList={left}", folder=folder)

    def is_down(self, node: Node) -> bool:
        """Whether Slurm knows that a node is, or it lacks what hosts need there."""
        if self.disks is not None and self.disks.on(node) is None:
            return True
        with suppress(BackendError):
            (known,) = queue.node_facts(node.name)
            return any(word in known.get("State", "") for word in ("DOWN", "FAIL", "NOT_RESPONDING", "*"))
        return False

    def ask_for_others(self) -> None:
        """Have Slurm start the job again, on nodes that are there; it interrupts this process for that.

        Raises BackendError where it does not, as for a job that may not be started again.
        """
        known = self._known()  # before the interruption, which may end the program that asks
        queue.ask("scontrol", "requeue", str(self.number))
        if not known or known.get("ReqNodeList", "(null)") != "(null)":
            return  # it asks for certain nodes, or may do so, and waits until they are there again
        excluded = {name for name in known.get("ExcNodeList", "(null)").split(",") if name != "(null)"} | self._lost
        for _ in range(UPDATES):
            with suppress(BackendError):
                queue.ask("scontrol", "update", f"JobId={self.number}", f"ExcNodeList={','.join(sorted(excluded))}")
                return

    def close(self) -> None:
        """Remove what the nodes have."""
        if self.disks is not None:
            self.disks.close()

    def channels_on(self, node: Node) -> JobFolder | None:
        """What has the channels that are on a node's own disk; None where they are not."""
        return None if self.disks is None else self.disks.on(node)

    def interrupt(self) -> None:
        """Slurm's signal has come: the ranks have it too, so hosts are told a moment later."""
        self.is_interrupted = True

    def is_taken(self) -> bool:
        """Whether Slurm has preempted the job, and gives it time, or ends it and has signalled another node first."""
        known = self._known()
        return _is_preempted(known) or known.get("JobState", "RUNNING") not in _STATES_OF_NODES_IN_USE

    def _known(self) -> dict[str, str]:
        """What Slurm says of the job; empty where it says nothing."""

        def said() -> dict[str, str]:
            (line,) = queue.ask("scontrol", "--oneliner", "show", "job", str(self.number)).splitlines()
            return queue.facts(line)

        try:
            return _answer(said)
        except (BackendError, ValueError):
            return {}

    def interruption(self) -> Interruption:
        """Asked of Slurm, whose signal alone says nothing of its reason."""
        job = f"job {self.number} of Slurm"
        known = self._known()
        if not known:  # it may come again; if not, whoever asks for the job next asks Slurm how it ended
            return Interruption(f"{job} was taken off its nodes, and Slurm does not say why", comes_again=True)
        again = Interruption(f"{job} was taken off its nodes, and is in the queue again", comes_again=True)
        if int(known.get("Restarts", "0")) > self._starts or known.get("JobState") in ("PENDING", "REQUEUED"):
            return again
        if _is_preempted(known) and known.get("JobState") == "RUNNING" and known.get("Requeue") == "1":
            with suppress(BackendError):  # it is given time, but a job that ends in it would not come again
                queue.ask("scontrol", "requeue", str(self.number))
                return again
        if known.get("Reason") == "NodeDown" or known.get("JobState") == "NODE_FAIL":
            what = f"a node of {job} failed, and the job may not be started again"
            return Interruption(what, verdict=Verdict(Kind.HOST_LOST, f"{what}; ask for slurm={{'requeue': True}}"))
        if known.get("Reason") == "TimeLimit" or known.get("JobState") == "TIMEOUT":
            return Interruption(f"{job} reached Slurm's time limit")
        if known.get("JobState") == "PREEMPTED" or _is_preempted(known):
            what = f"{job} was preempted, and may not be started again"
            return Interruption(what, verdict=Verdict(Kind.PREEMPTED, f"{what}; ask for slurm={{'requeue': True}}"))
        return Interruption(f"{job} was cancelled{accounting.by_whom(self.number)}")

    def loss(self, beside: str) -> Verdict | None:
        """Of the accounting: Slurm's controller forgets how a job ended that it has started again."""
        if accounting.ended_before(self.number) != "NODE_FAIL":
            return None
        what = f"the node of {beside} failed, where the supervisor ran, and Slurm started job {self.number} again"
        return Verdict(Kind.HOST_LOST, what, beside)


def _answer(asked: Callable[[], Answer]) -> Answer:
    """What Slurm answers, which is asked again for `ANSWER_SECONDS`. Raises what the last call raises."""
    until = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return asked()
        except (BackendError, ValueError):
            if time.monotonic() >= until:
                raise
            time.sleep(ASK_AGAIN_SECONDS)


def _is_preempted(known: dict[str, str]) -> bool:
    """Since its start; its state says so only once it is over.

    >>> _is_preempted({"StartTime": "2026-11-25T09:43:28", "PreemptTime": "2026-11-25T09:43:30"})
    True
    >>> _is_preempted({"StartTime": "2026-11-25T09:43:28", "PreemptTime": "None"})
    False
    """
    preempted = known.get("PreemptTime", "None")
    return preempted[:1].isdecimal() and preempted >= known.get("StartTime", "")


def _node(known: dict[str, str]) -> Node:
    name = known["NodeName"]
    address = known.get("NodeAddr", name)
    return Node(name, socket.gethostbyname(address), known.get("NodeHostName", name))
