"""What the ranks of a job were seen to do while they waited for input, in a run in which they were looked at."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from estimator_container.training.trials import doing
from estimator_container.training.trials.watch import MARK

from . import advice
from .machine_load import HostLoad

if TYPE_CHECKING:
    from estimator_container.logs.lines import Line

LEAST_LOOKS = 20
"""Of fewer nothing is said."""
SMALL_FILE = 256 << 10
"""Bytes, up to which a file is small."""
MOST_OPENED = 100
"""From so many files on they are many."""
BY_CPU = 0.5
"""From which share of its time on the CPU loading is computing, and not waiting."""
SOME_CPU = 0.25
"""From which share on those who make samples are held to compute, where they may have to wait for a CPU."""
ALL_BUT_LOCKED = 1.15
"""Threads that compute in turns use no more than one CPU, and a little in functions that let others in."""


class InputCause(str, Enum):
    """Why a rank waits for input."""

    DECODE = "decoding"
    AUGMENTATION = "augmentation"
    SMALL_FILES = "many small files"
    FILES = "reading files"
    STORE = "the store's rate"
    CPUS = "too few CPUs"
    LOCK = "the interpreter's lock"


@dataclass(frozen=True)
class InputLook:
    """What all ranks did together; times are in seconds."""

    looks: int
    """How often a rank was seen waiting for input."""
    doing: Mapping[str, float]
    """What it, or what loads for it, did then: the share of each thing."""
    place: str
    """The line of the script at which that was most often."""
    threads: float
    """How many threads of a rank did something then, in the mean."""
    input_seconds: float
    input_cpu: float
    """What the thread that waits used of a CPU meanwhile."""
    input_process_cpu: float
    """The same of its whole process."""
    input_waits: float
    """How often that thread waited for something meanwhile."""
    late: float
    """How long a thread waits for its turn while a rank computes, the mean: for the interpreter, or for a CPU."""
    checkpoint_cpu: float
    cpu: float
    """What the ranks used of a CPU all the time."""
    children: int
    children_cpu: float
    """What the children of ranks used of a CPU, such as workers of a DataLoader."""
    opened: int
    read: int
    """Files that were opened, and bytes that were read from files."""
    cpus: int
    """That a rank may use."""
    ranks: int
    seconds: float
    """For how long they were looked at, all together."""
    loads_by: str = ""
    """`DataLoader`, `tf.data` or `timed_input`; empty where none of them is used."""
    workers: int = 0
    can_share: bool = False
    """Whether workers can share the samples."""
    batches: int = 0
    """That a rank takes in one pass over its samples, where they could be kept once they are made; else 0."""
    batches_bytes: int = 0
    """About how much memory these would take, for each rank."""
    waits_in_turn: bool = True
    """Whether `tf.data` makes something while nothing else goes on."""
    given: str = ""
    """The class by which Keras takes what `fit` is given; empty without `fit`."""
    made: int = 0
    """How often `tf.data` has taken something from Python."""
    made_bytes: int = 0
    making: float = 0.0
    making_cpu: float = 0.0
    """What Python took to make that, and of a CPU."""
    modules: tuple[str, ...] = ()
    """The frameworks that the script has imported."""

    @property
    def cause(self) -> str:
        """What was done most of the time, in the words of `doing`; empty where too little was seen."""
        if self.looks < LEAST_LOOKS or not self.doing:
            return ""
        return max(self.doing, key=self.doing.__getitem__)

    @property
    def computes(self) -> bool:
        """Whether loading uses a CPU for most of its time."""
        return self.input_process_cpu >= BY_CPU * self.input_seconds

    def named(self, loads: Sequence[HostLoad] = ()) -> InputCause | None:
        """Why the ranks wait; None where what was seen does not tell."""
        match self.cause:
            case doing.STORE:
                return InputCause.STORE
            case doing.AUGMENTATION:
                return InputCause.AUGMENTATION
            case doing.FILES:
                small = self.opened >= MOST_OPENED and self.read <= SMALL_FILE * self.opened
                return InputCause.SMALL_FILES if small else InputCause.FILES
            case doing.DECODE:
                return self._of_decoding(loads)
        return None

    def sentence(self, loads: Sequence[HostLoad] = ()) -> str:
        """Why, as people say it; empty where it is not known."""
        cause = self.named(loads)
        if cause is None:
            return ""
        share = advice.percent(self.doing.get(self.cause, 0.0))
        where = f", most often at {self.place}" if self.place else ""
        how = "which uses a CPU" if self.computes else "which waits without using a CPU"
        words = {
            InputCause.DECODE: f"making samples, {how}",
            InputCause.AUGMENTATION: f"changing samples at random, {how}",
            InputCause.SMALL_FILES: f"opening and reading {self.opened} files of {self._mean_size()} in the mean",
            InputCause.FILES: f"reading files, {how}",
            InputCause.STORE: "waiting for what a store, or a server, sends",
            InputCause.CPUS: "making samples, on CPUs that have no time left",
            InputCause.LOCK: f"making samples in {self.threads:.1f} threads, of which one can use Python at a time",
        }
        return f"{share} of what loads is {words[cause]}{where}"

    def _mean_size(self) -> str:
        return f"{self.read / max(1, self.opened) / 1024:.0f} KiB"

    def _of_decoding(self, loads: Sequence[HostLoad]) -> InputCause:
        used = self.input_process_cpu / self.input_seconds if self.input_seconds else 0.0
        if not self.children and self.threads >= 1.5 and BY_CPU <= used <= ALL_BUT_LOCKED:
            return InputCause.LOCK
        # Others make the samples: if these compute, and the host has no time left, they wait for its CPUs.
        works = self.children_cpu >= SOME_CPU * self.seconds if self.children else used >= SOME_CPU
        is_beside = self.children > 0 or self.loads_by == "tf.data"
        is_busy = any(load.cpu >= advice.BUSY for load in loads)
        return InputCause.CPUS if is_busy and is_beside and works else InputCause.DECODE


def read(lines: Iterable[Line]) -> InputLook | None:
    """What a job's processes have told last, by what they wrote to stderr; None where none has told anything."""
    words = (line.data.decode(errors="replace") for line in lines)
    return merged(each.partition(MARK)[2] for each in words if MARK in each)


def merged(lines: Iterable[str]) -> InputLook | None:
    """What the processes have told, of which the last line counts."""
    told: dict[tuple[object, object], dict[str, Any]] = {}
    for line in lines:
        try:
            one = json.loads(line)
        except ValueError:  # cut off with its process
            continue
        told[one["rank"], one["pid"]] = one
    ranks = [one for one in told.values() if not one["child"]]
    children = [one for one in told.values() if one["child"]]
    if not ranks:
        return None
    looks = sum(one["looks"] for one in ranks)
    loader: Mapping[str, Any] = next((one["loader"] for one in ranks if one["loader"]), {})
    making = [one["making"] for one in ranks if one["making"]]
    shares, place = _doing(ranks, children)
    return InputLook(
        looks=looks,
        doing=shares,
        place=place,
        threads=sum(one["threads"] for one in ranks) / max(1, looks),
        input_seconds=_sum(ranks, "input_seconds"),
        input_cpu=_sum(ranks, "input_cpu"),
        input_process_cpu=_sum(ranks, "input_process_cpu"),
        input_waits=_sum(ranks, "input_waits"),
        late=_sum(ranks, "late") / len(ranks),
        checkpoint_cpu=_sum(ranks, "checkpoint_cpu"),
        cpu=_sum(ranks, "cpu"),
        children=len(children),
        children_cpu=_sum(children, "cpu"),
        opened=round(_sum(told.values(), "opened")),
        read=round(_sum(told.values(), "read")),
        cpus=min(one["cpus"] for one in ranks),
        ranks=len(ranks),
        seconds=_sum(ranks, "seconds"),
        loads_by=loader.get("by", ""),
        workers=loader.get("workers", 0),
        can_share=loader.get("can_share", False),
        batches=loader.get("batches", 0),
        batches_bytes=loader.get("bytes", 0),
        waits_in_turn=loader.get("waits_in_turn", True),
        given=loader.get("given", ""),
        made=round(_sum(making, "count")),
        made_bytes=round(_sum(making, "bytes")),
        making=_sum(making, "seconds"),
        making_cpu=_sum(making, "cpu"),
        modules=tuple(ranks[0]["modules"]),
    )


def _doing(ranks: Sequence[Mapping[str, Any]], children: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], str]:
    """Shares of what was done, and the place of most of it; where a rank waits for its children, what they do."""
    counts, places = _counted(ranks)
    theirs, their_places = _counted(children)
    waited, theirs[doing.WAITING] = counts.pop(doing.WAITING, 0), 0
    working = theirs.total()
    for what, count in theirs.items():
        counts[what] += round(waited * count / working) if working else 0
    if working and waited > counts.total() / 2:
        places = their_places
    whole = counts.total()
    most = max(counts, key=counts.__getitem__, default="")
    of_most = [(count, place) for place, count in places.items() if place.partition(" ")[0] == most]
    place = max(of_most)[1].partition(" ")[2] if of_most else ""
    return {what: count / whole for what, count in counts.items() if count}, place


def _counted(told: Iterable[Mapping[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    counts, places = Counter[str](), Counter[str]()
    for one in told:
        counts.update(one["doing"])
        places.update(one["places"])
    return counts, places


def _sum(told: Iterable[Mapping[str, Any]], name: str) -> float:
    return sum(float(one[name]) for one in told)
