"""S11: a small allreduce where there are more ranks than CPUs."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from .. import jobs, machines, peers
from ..harness import FEW, SCRIPTS, Case, Extent, Metric, Panel, Table, Target, Way, number
from ..turns import Clock, Together

SCRIPT = SCRIPTS / "allreduce.py"
BEST = "mpirun, best flags found"
ONE = Panel("allreduce of 1 KiB, all ranks on one host", "ranks", "us", (Target("fit()", BEST, 1.05),))
TWO = Panel("allreduce of 1 KiB, ranks on two hosts", "ranks", "us", (Target("fit()", BEST, 1.05),))

# As its source has it, for one host and without a GPU.
SAGEMAKER = (
    "-mca btl_tcp_if_include lo -mca oob_tcp_if_include lo -mca plm_rsh_no_tree_spawn 1 -bind-to none -map-by slot"
)
SAGEMAKER += (
    " -mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 -mca btl_vader_single_copy_mechanism none"
)

LAUNCHES = 3
"""Of one reading, where ways take turns: ranks lie elsewhere at each launch."""
CALLS = {1: {4: 40_000, 8: 20_000, 16: 6_000}, 2: {4: 12_000, 8: 6_000, 16: 2_000}}
"""Hosts -> ranks -> allreduces of one launch, of about half a second: in less, one wake-up of anything shows."""
Counts = list[tuple[float, float, int]]
"""When allreduces began and ended, by the time of day, and how many they were."""
SEARCH_LIMIT = 10.0  # seconds for one run of flags that are tried
LOOPBACK = ("-mca", "oob_tcp_if_include", "lo", "-mca", "btl_tcp_if_include", "lo")
_YIELD = ("-mca", "mpi_yield_when_idle")
_ALGORITHM = ("-mca", "coll_tuned_use_dynamic_rules", "1", "-mca", "coll_tuned_allreduce_algorithm")
_searched: dict[str, list[tuple[str, float]]] = {}
"""Where -> flags and what they gave, once each."""


def candidates(single: bool) -> list[tuple[str, ...]]:
    """Flags that a search tries: who yields, what carries the bytes, which algorithm reduces."""
    idle = [(*_YIELD, "1"), (*_YIELD, "0")]
    carriers = ("self,vader", "self,tcp", "self,vader,tcp") if single else ("self,vader,tcp", "self,tcp")
    carried = [("-mca", "btl", each) for each in carriers]
    found = [(*first, *second) for first, second in itertools.product(idle, carried)]
    best = (*_YIELD, "1", "-mca", "btl", carriers[0])
    # Linear, nonoverlapping, recursive doubling, ring: of `ompi_info --param coll tuned --level 9`.
    return found + [(*best, *_ALGORITHM, each) for each in "1234"]


def seconds(argv: Sequence[str], limit: float = jobs.PATIENCE) -> float:
    """Of one allreduce, the mean of half a second."""
    ((begun, ended, count),) = told(jobs.said([*argv, sys.executable, str(SCRIPT)], limit))
    return (ended - begun) / count


def told(text: str) -> Counts:
    """What the script printed."""
    found = (line.partition("allreduce ")[2].split() for line in text.splitlines() if "allreduce " in line)
    return [(float(begun), float(ended), int(count)) for begun, ended, count in found]


def by_hand(argv: Sequence[str], calls: int) -> Counts:
    script = [sys.executable, str(SCRIPT), f"--calls={calls}"]
    return [count for _ in range(LAUNCHES) for count in told(jobs.said([*argv, *script]))]


def ours(hosts: int, processes: int, calls: int) -> Counts:
    counts = []
    for _ in range(LAUNCHES):
        job = jobs.fit(jobs.estimator(SCRIPT, hosts, processes=processes, calls=calls)).job
        counts += told(b"".join(line.data for line in job.logs(stream="stdout")).decode())
    return counts


def mean(counts: Counts, clock: Clock) -> list[float]:
    return [statistics.fmean(clock.between(begun, ended) / count for begun, ended, count in counts)]


def two_by_turns(best: list[str], hosts: int, processes: int, extent: Extent) -> tuple[Way, ...]:
    calls = CALLS[hosts][hosts * processes] // (10 if extent.quick else 1)
    works = {BEST: partial(by_hand, best, calls), "fit()": partial(ours, hosts, processes, calls)}
    return Together(works, mean).ways({BEST: "floor", "fit()": "ours"})


def search(where: str, commands: dict[str, list[str]]) -> list[str]:
    """The command that is quickest in one run of each; flags that come to no end in time are out."""
    taken: list[tuple[str, float]] = []
    for flags, argv in commands.items():
        with contextlib.suppress(TimeoutError):
            taken.append((flags, seconds(argv, SEARCH_LIMIT)))
    taken.sort(key=lambda each: each[1])
    _searched[where] = taken
    return commands[taken[0][0]]


def cases(extent: Extent) -> Iterator[Case]:
    _searched.clear()
    with jobs.own_home():
        for ranks in extent.pick((4, 8, 16), (4,)):
            commands = {" ".join(flags): jobs.bare_mpirun(ranks, (*LOOPBACK, *flags)) for flags in candidates(True)}
            best = search(f"{ranks} ranks on one host", commands)
            theirs = [
                jobs.programs.find("mpirun"),
                *jobs.ROOT_FLAGS,
                "--host",
                f"localhost:{ranks}",
                "-np",
                str(ranks),
                *SAGEMAKER.split(),
            ]
            horovodrun = [peers.horovodrun(), "--mpi", "-np", str(ranks), "-H", f"localhost:{ranks}"]
            ways = (
                *two_by_turns(best, 1, ranks, extent),
                Way("mpirun, as it is", "peer", partial(seconds, jobs.bare_mpirun(ranks)), at_most=FEW),
                Way("mpirun, SageMaker's flags", "peer", partial(seconds, theirs), at_most=FEW),
                Way("horovodrun", "peer", partial(seconds, horovodrun), peer="horovodrun", at_most=FEW),
            )
            yield Case((ONE,), ranks, ways)
        for ranks in extent.pick((4, 8, 16), (4,)):
            with machines.hosts(2) as hosts:
                argv = partial(hosts.mpirun, hosts.bare_agent, ranks // 2)
                best = search(
                    f"{ranks} ranks on two hosts", {" ".join(flags): argv(flags) for flags in candidates(False)}
                )
                theirs = argv(("-mca", "mpi_yield_when_idle", "0", "-mca", "btl", "^openib"))
                ways = (
                    *two_by_turns(best, 2, ranks // 2, extent),
                    Way("mpirun, SageMaker's flags", "peer", partial(seconds, theirs), at_most=FEW),
                )
                yield Case((TWO,), ranks, ways)


def tables() -> list[Table]:
    return [
        Table(
            f"The search for flags, {where}",
            ("flags", "us"),
            tuple((f"`{flags}`", number(taken, "us")) for flags, taken in found),
            "One run of each, the quickest first; that one then runs beside the others.",
        )
        for where, found in _searched.items()
    ]


METRIC = Metric(
    "S11",
    "Messages where ranks outnumber the CPUs",
    "The mean of an allreduce of 1 KiB: of three launches of about half a second for ours and the floor, and of one "
    "for the peers. The "
    "floor is mpirun with the flags that a search in the "
    "same run finds best; it and `fit()` are under way at once and take turns of half a second, in which the other "
    "is frozen, and only their own turns count. The peers are "
    "mpirun with the flags that it chooses, with those of SageMaker's toolkit, and horovodrun, which are told that "
    "there is a slot for each "
    "rank, as they are told where a host is a container. On two hosts of one machine, each with a name of its own, a "
    "bare launch agent starts the "
    "peers' daemons.",
    cases,
    peers=("horovodrun",),
    tables=tables,
)
