"""S5: the whole `fit()` of a hello world, and where its time goes."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from estimator_container.contract.events import Ended, RankEnded, RankStarted, WorldStarting

from .. import jobs, machines, peers
from ..harness import FEW, Case, Extent, Metric, Panel, Table, Target, Way, number

FLOOR = "mpirun, one host, quickest flags"
PROCESSES = Panel("fit() of a hello world, in processes", "hosts", "s", (Target("fit()", plus=0.6, n=(2,)),))
GONE = "fit(), until nothing is left"
AROUND = "empty containers around a world of mpirun"
CONTAINERS = Panel(
    "fit() of a hello world, in containers",
    "hosts",
    "s",
    (Target(GONE, plus=2.0, n=(2,)), Target(GONE, AROUND, 1.25, n=(8,))),
)
STEPS = (
    ("the first host's toolkit is up", "the plan, the supervisor, the code, the first host's start"),
    ("every host's toolkit is up", "the other hosts' start"),
    ("every host is ready", "the hosts find and know each other; mpirun starts meanwhile"),
    ("every rank is started", "the last of mpirun's daemons, the ranks' wrappers"),
    ("every rank is in the world", "the interpreter, imports, MPI_Init"),
    ("the last rank has ended", "the script, MPI_Finalize, the interpreter's end"),
    ("the last host has ended", "mpirun's end, the verdict, the outputs"),
    ("fit() returns", "the hosts' end, the outputs' archives, the job's record, the client"),
)
"""When each phase ends, and what happens in it."""

_phases: dict[str, list[list[float]]] = {}
"""Backend -> for each run at 2 hosts the seconds of every step."""


def ours(count: int, image: str | None = None) -> float:
    job, called, returned, gone = jobs.fit(jobs.estimator(jobs.HELLO, count, image))
    if count == 2:
        _phases.setdefault("containers" if image else "processes", []).append(steps(job, called, returned, count))
    return (gone if image else returned) - called


def steps(job: jobs.Job, called: float, returned: float, ranks: int) -> list[float]:
    """Seconds between the ends of the steps."""
    found = jobs.events(job)
    text = b"".join(line.data for line in job.logs(stream="stdout")).decode()
    hosts = {event.host for event in found}
    first = [min(event.time for event in found if event.host == host) for host in hosts]
    ends = [
        min(first),
        max(first),
        max(event.time for event in found if isinstance(event.what, WorldStarting)),
        max(event.time for event in found if isinstance(event.what, RankStarted)),
        jobs.moments(called, returned, text, ranks).in_world,
        max(event.time for event in found if isinstance(event.what, RankEnded)),
        max(event.time for event in found if isinstance(event.what, Ended)),
        returned,
    ]
    return [end - begin for begin, end in zip([called, *ends], ends, strict=False)]


def tables() -> Sequence[Table]:
    made = []
    for backend, runs in _phases.items():
        middle = [statistics.median(column) for column in zip(*runs, strict=True)]
        whole = sum(middle)
        rows = tuple(
            (until, number(seconds, "ms"), f"{seconds / whole:.0%}", what)
            for (until, what), seconds in zip(STEPS, middle, strict=True)
        )
        most = max(range(len(middle)), key=middle.__getitem__)
        words = (
            f"Of {number(whole, 'ms')} ms in all, most, {number(middle[most], 'ms')} ms, go until {STEPS[most][0]}: "
            f"{STEPS[most][1]}. "
            "Medians of the same runs, from the times at which hosts and ranks wrote them down."
        )
        made.append(
            Table(
                f"Where the time of fit() on 2 hosts goes, in {backend}",
                ("until", "ms", "share", "what happens"),
                rows,
                words,
            )
        )
    return made


def whole(argv: list[str], ranks: int) -> float:
    told = jobs.by_hand(argv, ranks)
    return told.returned - told.called


def engine_alone(image: str, count: int) -> float:
    """Containers with nothing in them, made, started, waited for and removed."""
    started = time.perf_counter()
    with machines.bare_containers(image, count, ["true"]) as containers:
        for each in containers:
            each.wait(timeout=jobs.PATIENCE)
    return time.perf_counter() - started


def engine_around_a_world(image: str, count: int) -> float:
    """Containers that are all up at once, as the hosts of a world must be, and meanwhile a world outside of them."""
    started = time.perf_counter()
    with machines.bare_containers(image, count, ["sleep", f"{jobs.PATIENCE:.0f}"]):
        whole(jobs.quickest_mpirun(count), count)
    return time.perf_counter() - started


def containers_by_hand(count: int) -> float:
    """The peers' image, an sshd in each container, mpirun over ssh in the first, and everything removed."""
    started = time.perf_counter()
    argv = ["/usr/sbin/sshd", "-D"]
    with machines.bare_containers(peers.TOOLKIT_IMAGE, count, argv, {str(jobs.HELLO): "/hello.py"}) as containers:
        mpirun_in(containers, count)
    return time.perf_counter() - started


def mpirun_in(containers: list, count: int) -> None:
    hosts = ",".join(f"algo-{number}" for number in range(1, count + 1))
    # As a user would write it, and the one flag without which names that take long to look up cost seconds.
    mpirun = ["mpirun", "--allow-run-as-root", "-mca", "if_base_do_not_resolve", "1"]
    mpirun += ["--host", hosts, "-np", str(count), "/opt/venv/bin/python3", "/hello.py"]
    machines.wait_for(lambda: ran(containers[0], mpirun))


def ran(container: Any, argv: list[str]) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401 - docker has no types
    """A command in a container, as `docker exec` runs it."""
    code, output = container.exec_run(argv)
    return subprocess.CompletedProcess(argv, code, output, output)


def theirs(count: int) -> float:
    told = jobs.sagemaker_local(count)
    return told.returned - told.called


def cases(extent: Extent) -> Iterator[Case]:
    _phases.clear()
    with jobs.own_home():
        for count in extent.pick((2, 4, 8, 16), (2, 4)):
            horovodrun = [peers.horovodrun(), "--mpi", "-np", str(count)]
            ways = (
                Way(FLOOR, "floor", partial(whole, jobs.quickest_mpirun(count), count)),
                Way("mpirun, one host, as it is", "peer", partial(whole, jobs.bare_mpirun(count), count)),
                Way("horovodrun", "peer", partial(whole, horovodrun, count), peer="horovodrun", at_most=FEW),
                Way("fit()", "ours", partial(ours, count)),
            )
            yield Case((PROCESSES,), count, ways)
        image = jobs.our_image()
        for count in extent.pick((2, 8), (2,)):
            by_hand = partial(containers_by_hand, count)
            ways = (
                Way("empty containers", "floor", partial(engine_alone, image, count)),
                Way(AROUND, "floor", partial(engine_around_a_world, image, count)),
                Way("sshd and mpirun by hand", "peer", by_hand, peer="sagemaker-training"),
                Way(GONE, "ours", partial(ours, count, image)),
            )
            if count == 2:
                local = partial(theirs, count)
                ways += (Way("SageMaker local mode", "peer", local, peer="sagemaker", at_most=1),)
            yield Case((CONTAINERS,), count, ways)


METRIC = Metric(
    "S5",
    "A whole job",
    "A script that imports mpi4py and prints a line, one rank a host, from the call of `fit()` to its return. In "
    "processes the floor is mpirun with "
    "as many ranks on one host and the flags that start it quickest; the peers are mpirun with the flags that it "
    "chooses, and horovodrun. In "
    "containers the floor is the engine that makes, starts and removes empty ones: once such as end at once, and once "
    "such as are all up while mpirun runs a world on one host beside them; one peer is what people do by hand: "
    "containers with an "
    "sshd, mpirun over ssh in the first, all removed; the other is SageMaker's local mode. Ours is timed until its "
    "containers and network are removed as well, for which `fit()` itself does not wait (S4).",
    cases,
    peers=("horovodrun", "sagemaker", "docker-compose", "sagemaker-training"),
    tables=tables,
)
