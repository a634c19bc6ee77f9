"""What makes the steps of a job slow: a pure function of what its ranks have told.

Nothing is blamed on thin evidence: not on a few steps, nor on what is not known of all ranks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from estimator_container.contract.events import RankSlow
from estimator_container.failures import stragglers
from estimator_container.failures.stragglers import StepPace, slowdown
from estimator_container.failures.verdict import who_is

from ..timeline import Who
from . import advice, shares
from .machine_load import HostLoad
from .shares import SEEN, Kind, RankShares
from .step_records import StepSample

LEAST_STEPS, LEAST_SECONDS = 20, 3.0
"""Of fewer steps, or of shorter ones, nothing is said."""
MODERATELY, HIGHLY = 0.05, 0.20
"""From which share of a step on a job is moderately and highly input bound: as TensorFlow's profiler has it."""
LEAST_SHARE: Mapping[Kind, float] = {"input": MODERATELY, "communication": 0.10, "checkpoint": 0.05, "idle": 0.10}
"""What is less is no cause."""
LEAST_FACTOR = 1.1
"""A rank is slow where every step takes so many times as long for it."""
PARTS, LEAST_PARTS = 4, 3
"""Into so many parts the steps are cut, and in so many of these a rank is slower than all others before it is named."""
CLEARLY = 2.0
"""What takes less than so many times its least share is named only if it takes that in as many of the parts."""
InputClass = Literal["not input bound", "moderately input bound", "highly input bound"]


@dataclass(frozen=True)
class Cause:
    """One thing that takes time."""

    kind: Literal["input", "communication", "checkpoint", "idle", "too few CPUs", "slow rank"]
    share: float
    """Of a step, from 0 to 1: what could be gained at the most."""
    sentence: str
    advice: str
    host: str | None = None
    """Where the slow rank is; None where all ranks are alike."""
    rank: int | None = None

    @property
    def most_gain(self) -> float:
        """How many times as fast the steps would be at the most."""
        return 1.0 / max(0.01, 1.0 - self.share)


def why_thin(ranks: Sequence[RankShares]) -> str:
    """Why nothing can be said, and what to do; empty if something can."""
    if not ranks:
        return (
            "nothing is known of this job's training steps: none of its ranks has counted two. Steps of Keras 3 and "
            "PyTorch are counted without a line in the script; any other script says `mark_step()` after each "
            "(`from estimator_container.training import mark_step`)"
        )
    steps, seconds = min(rank.steps for rank in ranks), min(rank.seconds for rank in ranks)
    if steps < LEAST_STEPS or seconds < LEAST_SECONDS:
        return (
            f"too little has been seen to blame anything: {steps} steps in {seconds:.1f} s. "
            f"Run it for at least {LEAST_STEPS} steps and {LEAST_SECONDS:.0f} s, and ask again"
        )
    return ""


def input_class(share: float | None) -> InputClass | None:
    """How TensorFlow's profiler would call a job whose steps wait so much for input.

    >>> input_class(0.04), input_class(0.2)
    ('not input bound', 'highly input bound')
    """
    if share is None:
        return None
    if share < MODERATELY:
        return "not input bound"
    return "moderately input bound" if share < HIGHLY else "highly input bound"


def input_share(ranks: Sequence[RankShares], loads: Sequence[HostLoad]) -> float | None:
    """How much of a step is lost to waiting for input, the mean over the ranks; None where it is not known.

    While a GPU works nothing is lost, even if the script waits, for it has given the GPU its work before.
    """
    share, gpus = shares.mean(ranks, "input"), [load.gpu for load in loads if load.gpu is not None]
    return share if share is None or not gpus else min(share, 1.0 - statistics.mean(gpus))


def find(
    ranks: Sequence[RankShares],
    samples: Mapping[Who, Sequence[StepSample]],
    told_slow: Sequence[RankSlow] = (),
    loads: Sequence[HostLoad] = (),
) -> tuple[Cause, ...]:
    """The causes, the one that takes most first; empty where there is none, and where there is too little evidence."""
    if why_thin(ranks):
        return ()
    slow = slow_rank(ranks, samples) or next(map(_as_told, told_slow), None)
    alike = ranks if slow is None else [rank for rank in ranks if (rank.host, rank.rank) != (slow.host, slow.rank)]
    found = [*([slow] if slow else []), *_common(ranks, alike, samples, loads)]
    return tuple(sorted(found, key=lambda cause: cause.share, reverse=True))


def slow_rank(ranks: Sequence[RankShares], samples: Mapping[Who, Sequence[StepSample]]) -> Cause | None:
    """The one rank for which the others wait, if there is one; none where it is not known how long each waits.

    Where it is checkpoints that they wait for, these are the cause.
    """
    if len(ranks) < 2 or any(rank.communication is None for rank in ranks):
        return None
    slowest = [_slowest(part) for part in shares.parts(samples, PARTS)]
    named = [who for who, factor in slowest if factor >= LEAST_FACTOR]
    if not named or named.count(statistics.mode(named)) < LEAST_PARTS:
        return None
    host, number = statistics.mode(named)
    rank = next(each for each in ranks if (each.host, each.rank) == (host, number))
    others = [each for each in ranks if each is not rank]
    excess = _own(rank) - statistics.median_low([_own(each) for each in others])
    kinds: tuple[Kind, ...] = ("input", "checkpoint", "idle")
    kind: Kind
    more = {
        kind: rank.seconds_of(kind) - statistics.median([each.seconds_of(kind) for each in others]) for kind in kinds
    }
    kind = max(kinds, key=more.__getitem__)
    if more[kind] < excess / 2:
        kind = "computing"
    share = min(0.99, max(0.0, excess / rank.step))
    if kind == "checkpoint":  # it is no slower than the others, but does what is done for all
        sentence = (
            f"{who_is(host, number)} writes checkpoints in {advice.percent(share)} of a step, and the others wait"
        )
        return Cause("checkpoint", share, sentence, advice.OF_SLOW_RANK[kind], host, number)
    sentence = (
        f"{who_is(host, number)} is slow, and the others wait for it: it spends {_own(rank):.3g} s of a step by "
        f"itself, the median of the others {_own(rank) - excess:.3g} s; most of the difference is {_WORDS[kind]}"
    )
    return Cause("slow rank", share, sentence, advice.OF_SLOW_RANK[kind], host, number)


def _slowest(part: Mapping[Who, StepSample]) -> tuple[Who, float]:
    """Of one part of the steps: the rank that does most by itself, and how many times as long a step is for it."""
    own = {who: (sample.seconds - (sample.communication or 0.0)) / max(1, sample.steps) for who, sample in part.items()}
    who = max(own, key=own.__getitem__)
    others = [each for other, each in own.items() if other != who]
    whole = part[who].seconds / max(1, part[who].steps)
    return who, slowdown(StepPace(whole, own[who]), statistics.median_low(others)) if whole > 0 else 1.0


def _own(rank: RankShares) -> float:
    return rank.step - rank.seconds_of("communication")


def _as_told(event: RankSlow) -> Cause:
    sentence = stragglers.sentence(event).partition("; every step")[0]
    return Cause("slow rank", 1 - 1 / event.factor, sentence, advice.OF_SLOW_RANK["computing"], event.host, event.rank)


def _common(
    ranks: Sequence[RankShares],
    alike: Sequence[RankShares],
    samples: Mapping[Who, Sequence[StepSample]],
    loads: Sequence[HostLoad],
) -> Iterator[Cause]:
    """What takes time on all ranks, or on all that are `alike`: the slow one has been told of."""
    parts = shares.parts({(rank.host, rank.rank): samples[rank.host, rank.rank] for rank in alike}, PARTS)
    for kind in SEEN:
        share = input_share(alike, loads) if kind == "input" else shares.mean(alike, kind)
        if kind == "communication":
            # What the last rank to come spends on it is the transfer itself; the others wait for that rank, too.
            known = [rank.communication for rank in ranks if rank.communication is not None]
            share = min(known) if len(known) == len(ranks) else None
        if share is None or share < LEAST_SHARE[kind]:
            continue
        if share < CLEARLY * LEAST_SHARE[kind] and not _lasts(kind, parts):
            continue
        short = _short_of_cpus(share, loads) if kind == "idle" else ""
        if short:
            sentence = f"in {advice.percent(share)} of a step the ranks wait, and use no CPU; {short}"
            yield Cause("too few CPUs", share, sentence, advice.MORE_CPUS)
        else:
            yield Cause(
                kind, share, f"{advice.percent(share)} of a step is {_WORDS[kind]}", advice.against(kind, loads)
            )


def _lasts(kind: Kind, parts: Sequence[Mapping[Who, StepSample]]) -> bool:
    """Whether it takes its least share in most parts of the steps, and not because of a moment that was slow.

    Checkpoints are written now and then, and each counts.
    """
    means = (shares.mean([shares.shares_of(who, [sample]) for who, sample in part.items()], kind) for part in parts)
    return kind == "checkpoint" or sum((mean or 0.0) >= LEAST_SHARE[kind] for mean in means) >= LEAST_PARTS


def _short_of_cpus(idle: float, loads: Sequence[HostLoad]) -> str:
    """Why ranks that are idle for such a share of a step may well wait for a CPU; empty where nothing says so.

    A host that is a container sees only its own CPU time, so the CPUs that others keep busy show by pressure alone. A
    rank that waits for a CPU is under pressure at least as long.
    """
    busiest = max(loads, key=lambda load: load.cpu, default=None)
    if busiest is not None and busiest.cpu >= advice.BUSY:
        busy = advice.percent(busiest.cpu)
        return f"those of {busiest.host} are {busy} busy, so they may well wait for one of its {busiest.cpus:g} CPUs"
    pressed = max(loads, key=lambda load: load.cpu_pressure, default=None)
    if pressed is not None and pressed.cpu_pressure >= idle:
        pressure = advice.percent(pressed.cpu_pressure)
        return f"on {pressed.host} some task waited for a CPU in {pressure} of the time, so they may well do so, too"
    return ""


_WORDS: Mapping[Kind, str] = {
    "input": "waiting for input",
    "communication": "communicating, when the last rank has come",
    "checkpoint": "writing checkpoints",
    "idle": "idle: no input, no communication and no checkpoint that is seen, and no CPU in use",
    "computing": "computing",
}
