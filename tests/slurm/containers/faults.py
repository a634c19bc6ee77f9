"""What happens to jobs on a cluster, one fault after the other, and which ending is right after each."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from tests.chaos.faults import Truth, of_host
from tests.chaos.rounds import Grade, judge

from .cluster import ContainerCluster
from .jobs import ClusterJob, submit
from .scripts import FILLS, FOLLOWS, WORKS

End = Mapping[str, Any]
"""How a job ended, as `ClusterJob.end` tells it."""
NOTICED_SECONDS = 90.0
"""From most faults to the end of the job: more is a hang."""
COMES_AGAIN_SECONDS = 240.0
"""The same for a job that waits in the queue again, until what let it start first has expired."""
LIMITS_SECONDS = 200.0
"""The same where Slurm has to look at time limits, which it does once a minute."""
ROOM = 20_000_000  # bytes that the home of the user still takes, once it is to be full
LASTS_SECONDS = 20
"""Of a job that is to come to its end as if nothing had been."""
FOR_EVER_SECONDS = 600


@dataclass(frozen=True)
class Strike:
    """What is done in a round; the same seed and number give the same."""

    number: int
    seed: int
    fault: str
    hosts: int
    processes: int | None
    target: int
    """Which host, from 1, of a fault to one: never the first, with whose machine Slurm starts the job anew."""
    moment: float
    """Seconds after all ranks are up or, of a client, after it has begun."""
    chance: float
    """From 0 to 1, for what a fault has to choose besides."""

    @property
    def ranks(self) -> int:
        return self.hosts * (self.processes or 1)

    @property
    def store(self) -> str:
        """The folder of the job's checkpoints, in the user's home."""
        return f"chaos-{self.seed}-{self.number}"

    def arguments(self) -> dict[str, Any]:
        """Those of the estimator, besides the script."""
        mpi = {"mpi": {"enabled": True, "processes_per_host": self.processes}} if self.processes else None
        return {"distribution": mpi, "checkpoint_s3_uri": f"file:///shared/home/ada/{self.store}"}


Act = Callable[[ContainerCluster, ClusterJob, Strike], None]
Judge = Callable[[Strike, ClusterJob, End], Grade]


def _node(job: ClusterJob, strike: Strike) -> str:
    return job.nodes()[strike.target - 1]


def _to_node(hurt: Callable[[ContainerCluster, str], None]) -> Act:
    return lambda made, job, strike: hurt(made, _node(job, strike))


def _kill_first(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.kill(job.nodes()[0])


def _kill_rank(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    """SIGKILL to one script on a node."""
    of_rank = "kill -KILL $(pgrep -u ada -f train[.]py | tail -n 1)"
    made.run("sh", "-c", of_rank, machine=_node(job, strike))


def _who(strike: Strike) -> str:
    return "root" if strike.chance < 0.5 else "ada"


def _scancel(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.run("scancel", str(job.number), machine="login", user=_who(strike))


def _requeue(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.run("scontrol", "requeue", str(job.number), machine="login", user=_who(strike))


def _preempt(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    """A job of a partition of higher priority wants one of the nodes for a moment."""
    node = job.nodes()[int(strike.chance * strike.hosts)]
    urgent = ("--partition=urgent", f"--nodelist={node}", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    made.run("sbatch", *urgent, machine="login", user="bob")


def _shorten(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.run("scontrol", "update", f"JobId={job.number}", "TimeLimit=00:00:01")


def _restart_controller(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.stop_controller()
    try:
        threading.Event().wait(10 * strike.chance)
    finally:
        made.start_controller()


def _cancel_without_accounting(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.stop_accounting()
    _scancel(made, job, strike)


def _fill(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    used = int(made.run("sh", "-c", "du -sb /shared/home/ada | cut -f1"))
    made.run("mfssetquota", "-L", str(used + ROOM), "/shared/home/ada")


def _kill_client(made: ContainerCluster, job: ClusterJob, strike: Strike) -> None:
    made.login(f"kill -KILL $(cat {job.name}.pid)")


def _as_told(kind: str, of_rank: bool = False) -> Judge:
    """A job that fails by the kind, host and, of a world, rank that were struck."""

    def judged(strike: Strike, job: ClusterJob, end: End) -> Grade:
        host, each = f"algo-{strike.target}", strike.processes
        truth = of_host(host, kind)
        if of_rank:
            own = range((strike.target - 1) * (each or 0), strike.target * (each or 0))
            truth = Truth((kind,), frozenset({host}), frozenset(own) if each else frozenset({None}))
        if end["kind"] is None:
            return "wrong"
        return judge(truth, Verdict(Kind(end["kind"]), end["why"], end["host"], end["rank"]))

    return judged


def _stopped(words: Callable[[Strike], str], vague: str) -> Judge:
    """A job that is Stopped for a reason that ends with these words, or at least says others.

    What it adds after a semicolon is of checkpoints that were not published in time.
    """

    def judged(strike: Strike, job: ClusterJob, end: End) -> Grade:
        reason, _, _ = end["reason"].partition(";")
        if end["status"] != "Stopped" or vague not in reason:
            return "wrong"
        return "correct" if reason.endswith(words(strike)) else "vague"

    return judged


def _full(strike: Strike, job: ClusterJob, end: End) -> Grade:
    if end["status"] != "Failed":
        return "wrong"
    return "correct" if "quota" in end["why"] or "space" in end["why"] else "vague"


def _goes_on(strike: Strike, job: ClusterJob, end: End) -> Grade:
    return "correct" if end["status"] == "Completed" and end["attempts"] == [None] else "wrong"


def _resumed(strike: Strike, job: ClusterJob, end: End) -> Grade:
    """From a checkpoint, as the next attempt of the same job."""
    begun = {text.split()[-1] for _, _, text in job.lines() if text.startswith("up at")}
    before, *last = end["attempts"]
    is_right = end["status"] == "Completed" and len(begun) > 1 and last == [None]
    return "correct" if is_right and before == FAULTS[strike.fault].before else "wrong"


def _goes_on_or_was_never_there(strike: Strike, job: ClusterJob, end: End) -> Grade:
    """A client may be killed before Slurm has the job: then that is said, and there is none."""
    if end["status"] == "Failed" and "has no number at Slurm" in end["why"]:
        return "correct"
    return "correct" if end["status"] in (None, "Completed") else "wrong"


def _submit(seconds: int) -> Callable[[ContainerCluster, Strike], ClusterJob]:
    def submitted(made: ContainerCluster, strike: Strike) -> ClusterJob:
        return submit(made, WORKS.format(seconds=seconds), strike.hosts, **strike.arguments())

    return submitted


_for_ever, _for_a_while = _submit(FOR_EVER_SECONDS), _submit(LASTS_SECONDS)


def _submit_filling(made: ContainerCluster, strike: Strike) -> ClusterJob:
    source = FILLS.format(what="lines" if strike.chance < 0.5 else "checkpoints")
    return submit(made, source, strike.hosts, **strike.arguments())


def _follow(made: ContainerCluster, strike: Strike) -> ClusterJob:
    """A client that is left to itself, in the middle of `fit()`."""
    name = f"followed-{uuid.uuid4().hex[:8]}"
    given = {"instance_type": "slurm", "instance_count": strike.hosts, **strike.arguments()}
    source = WORKS.format(seconds=LASTS_SECONDS)
    program = FOLLOWS.format(
        name=name, source=source, arguments=", ".join(f"{key}={value!r}" for key, value in given.items())
    )
    made.in_background(program, f"{name}.pid")
    return ClusterJob(made, name)


@dataclass(frozen=True)
class Fault:
    """Something that happens to a job, and how that must end."""

    strike: Act
    judge: Judge
    seconds: float = NOTICED_SECONDS
    start: Callable[[ContainerCluster, Strike], ClusterJob] = _for_ever
    hurts: Literal["", "target", "first"] = ""
    """Whose node is of no use afterwards."""
    before: str | None = "preempted"
    """The kind of the verdict on an attempt that another follows."""
    heal: Callable[[ContainerCluster], None] = lambda made: None
    """Has the cluster as it was before."""
    needs: str = "ranks"
    """What must be there first: `nothing`, all `ranks`, or also a `snapshot`."""


def _has_space(made: ContainerCluster) -> None:
    made.run("mfsdelquota", "-L", "/shared/home/ada")


_BY = _stopped(lambda strike: f"was cancelled by {_who(strike)}", "was cancelled")
FAULTS: Mapping[str, Fault] = {
    "kill-node": Fault(_to_node(ContainerCluster.kill), _as_told("host_lost"), hurts="target"),
    "scancel": Fault(_scancel, _BY),
    "kill-first-node": Fault(
        _kill_first, _resumed, COMES_AGAIN_SECONDS, hurts="first", before="host_lost", needs="snapshot"
    ),
    "cut-node": Fault(_to_node(ContainerCluster.cut), _as_told("host_lost"), hurts="target"),
    "requeue": Fault(_requeue, _resumed, COMES_AGAIN_SECONDS, needs="snapshot"),
    "freeze-node": Fault(_to_node(ContainerCluster.freeze), _as_told("host_lost"), hurts="target"),
    "kill-client": Fault(
        _kill_client, _goes_on_or_was_never_there, COMES_AGAIN_SECONDS, start=_follow, needs="nothing"
    ),
    "kill-rank": Fault(_kill_rank, _as_told("signal", of_rank=True)),
    "preempt": Fault(_preempt, _resumed, COMES_AGAIN_SECONDS, needs="snapshot"),
    "fill-folder": Fault(_fill, _full, start=_submit_filling, heal=_has_space),
    "restart-controller": Fault(_restart_controller, _goes_on, start=_for_a_while),
    "scancel-without-accounting": Fault(
        _cancel_without_accounting,
        _stopped(lambda strike: "was cancelled", "was cancelled"),
        heal=ContainerCluster.start_accounting,
    ),
    "time-limit": Fault(_shorten, _stopped(lambda strike: "reached Slurm's time limit", "limit"), LIMITS_SECONDS),
}
"""The faults come in this order, each with a job and a moment at random."""


def start(made: ContainerCluster, strike: Strike) -> ClusterJob:
    """The job of a round, which finds no checkpoints of another."""
    made.login(f"rm -rf {strike.store}")
    return FAULTS[strike.fault].start(made, strike)


def do(made: ContainerCluster, job: ClusterJob, strike: Strike) -> tuple[float, str]:
    """Have it happen, once what it needs is there; returns when that was, and which node is hurt."""
    fault = FAULTS[strike.fault]
    if fault.needs != "nothing":
        job.wait_for_line("up at", times=strike.ranks)
    if fault.needs == "snapshot":
        published = f"ls {strike.store}/.estimator/snapshots 2>/dev/null || true"
        made.wait(lambda: ".json" in made.login(published), "a snapshot")
    threading.Event().wait(strike.moment)
    nodes = job.nodes() if fault.hurts else []
    at = time.time()
    fault.strike(made, job, strike)
    return at, nodes[0 if fault.hurts == "first" else strike.target - 1] if nodes else ""
