"""What is said of ranks that stand still: by which rule, who is to blame, and all that is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Union

from ...logs.frames import NO_RANK
from ..kind import Kind
from ..verdict import Verdict, names_of, odd_one, who_is
from .standing import AT_ITS_END, StandingRank

if TYPE_CHECKING:
    from ..horovod_stalls import Stall

Place = tuple[str, int]
"""A host, and a rank on it; without a world that is NO_RANK."""
Fact = Union[str, float, None, Sequence["Fact"], Mapping[str, "Fact"]]
TWICE = 2  # so often ranks reach the bound when one of them only sleeps
SLEEP = 10.0  # times the least bound, which is 30 s: a script may well sleep for five minutes, and that is no hang
LISTED = 32  # ranks of which the text of a verdict has the evidence; the event has all


class HangRule(NamedTuple):
    """How long ranks may stand still."""

    seconds: float
    why: str = ""


def rule_for(standing: Mapping[Place, StandingRank], bound: float, floor: float, ceiling: float) -> HangRule:
    """The rule for ranks that stand still, in seconds.

    `bound` is what is learnt, `floor` the least that is, and `ceiling` is `hang_timeout`.

    >>> at = ("algo-1", 0)
    >>> rule_for({at: StandingRank("a")}, 30.0, 30.0, 1800.0).seconds
    30.0
    >>> rule_for({at: StandingRank("a", sleeps=True)}, 30.0, 30.0, 1800.0).seconds
    600.0
    >>> rule_for({at: StandingRank("a", works=True)}, 30.0, 30.0, 1800.0).seconds
    1800.0
    """
    if bound < ceiling and not any(each.works for each in standing.values()) and not _all_take_part(standing):
        if not any(each.sleeps for each in standing.values()):
            return HangRule(bound, "after the silences so far")
        allowed = TWICE * max(bound, SLEEP * floor)
        if allowed < ceiling:
            return HangRule(allowed, "to a rank that sleeps")
    return HangRule(ceiling, "by hang_timeout")


def _all_take_part(standing: Mapping[Place, StandingRank]) -> bool:
    """Whether nobody is missing from a collective that may be at work: it moves memory where no kernel counts that."""
    ranks = list(standing.values())
    together = len(ranks) > 1 and len({each.stack for each in ranks}) == 1
    return together and all(each.is_collective and each.spins for each in ranks)


class HangFinding(NamedTuple):
    """What is made of ranks that stand still."""

    standing: Mapping[Place, StandingRank]
    ended: tuple[Place, ...]
    """Those of the ranks that are awaited that have ended."""
    seconds: float
    rule: HangRule
    stall: Stall | None = None
    """What Horovod says of it, if it does."""

    @property
    def done(self) -> list[Place]:
        """Those that are through with their script."""
        at_end = (place for place, each in self.standing.items() if each.stack == AT_ITS_END)
        return sorted({*self.ended, *at_end}, key=_by_rank)

    @property
    def waiting(self) -> list[Place]:
        """Those that wait in a collective."""
        return [place for place, each in self._in_order if each.is_collective]

    @property
    def missing(self) -> list[Place]:
        """Those for which they wait: none where all are in one."""
        return [place for place, each in self._in_order if not each.is_collective] if self.waiting else []

    @property
    def groups(self) -> dict[str, list[Place]]:
        """Where ranks stand -> the ranks that stand there."""
        found: dict[str, list[Place]] = {}
        for place, each in self._in_order:
            found.setdefault(each.stack, []).append(place)
        return found

    @property
    def _in_order(self) -> list[tuple[Place, StandingRank]]:
        return sorted(self.standing.items(), key=lambda item: _by_rank(item[0]))

    @property
    def culprit(self) -> Place | None:
        """The only one that differs, or that there is."""
        if self.stall is not None:
            rank = _only_one(self.stall)
            return next((place for place in (*self.standing, *self.ended) if place[1] == rank), None)
        if len(self.standing) == 1:
            return next(iter(self.standing))
        if len(self.missing) == 1:
            return self.missing[0]
        places = [place for places in self.groups.values() for place in places]
        odd = odd_one([[places.index(place) for place in group] for group in self.groups.values()])
        return places[odd] if odd is not None else None

    @property
    def sentence(self) -> str:
        """Who stands still, since when, by which rule, and who is to blame."""
        _, rank = next(iter(self.standing))
        whose = "no rank has written anything or moved from its line"
        if rank == NO_RANK:
            hosts = _names([place for place, _ in self._in_order])
            whose = f"the script on {hosts} has written nothing and has not moved from its line"
        allowed = f" ({self.rule.seconds:g} s are allowed {self.rule.why})" if self.rule.why else ""
        return f"{whose} for {round(self.seconds, 1):g} s{allowed}{self._blame}"

    @property
    def _blame(self) -> str:
        if self.stall is not None:
            return f"; {self.stall.sentence()}"
        culprit, waiting = self.culprit, self.waiting
        where = self.standing[culprit].place if culprit is not None and culprit in self.standing else ""
        if waiting and self.missing:
            calls = " and ".join(sorted({self.standing[place].call for place in waiting}))
            at = f" at {where}" if where else ""
            verb = "is" if len(self.missing) == 1 else "are"
            on = f" on {self.missing[0][0]}" if len(self.missing) == 1 and self.missing[0][1] != NO_RANK else ""
            wait = "waits" if len(waiting) == 1 else "wait"
            return f"; {_names(self.missing)}{on} {verb} missing{at}, and {_names(waiting)} {wait} in {calls}"
        if culprit is None:
            return ""
        if len(self.standing) == 1:
            return f"; it is at {where}" if where else ""
        return f"; {_names([culprit])} is at a different line from the others" + (f", {where}" if where else "")

    def verdict(self) -> Verdict:
        """The verdict on the job."""
        waiting = [place for place in self.standing if place not in self.done]
        if self.done and waiting and self.done[0][1] != NO_RANK:
            stands = "no rank has written anything or moved from its line"
            what = (
                f"{_names(self.done)} finished the script successfully while {_names(sorted(waiting, key=_by_rank))} "
                f"did not: {stands} for {round(self.seconds, 1):g} s"
            )
            kind, culprit = Kind.EARLY_EXIT, self.done[0] if len(self.done) == 1 else None
            victims = tuple(sorted(rank for _, rank in waiting))
        else:
            what, kind, culprit, victims = f"a deadlock is suspected: {self.sentence}", Kind.DEADLOCK, self.culprit, ()
        host, number = culprit if culprit is not None else (None, None)
        return Verdict(kind, what, host, None if number == NO_RANK else number, detail=self.text(), victims=victims)

    def text(self) -> str:
        """The evidence of each rank, and where they are, with equal places together."""
        listed = self._in_order[:LISTED]
        evidence = "\n".join(f"{who_is(host, _number(rank))}: {_in_words(each)}" for (host, rank), each in listed)
        stacks = (
            f"{_names(places)}, the innermost call first:\n{stack}" for stack, places in self.groups.items() if stack
        )
        native = (
            f"{_names(places)} in native code, as py-spy says:\n{self.standing[places[0]].native}"
            for places in self.groups.values()
            if self.standing[places[0]].native
        )
        return "\n\n".join((evidence, *stacks, *native))

    def facts(self) -> dict[str, Fact]:
        """The same as data: what `text` and `sentence` are made of."""
        return {
            "sentence": self.sentence,
            "seconds": round(self.seconds, 1),
            "allowed": self.rule.seconds,
            "rule": self.rule.why,
            "culprit": _fact_of(self.culprit) if self.culprit is not None else None,
            "waiting": [_fact_of(place) for place in self.waiting],
            "missing": [_fact_of(place) for place in self.missing],
            "groups": [
                {"ranks": [_fact_of(place) for place in places], "stack": stack}
                for stack, places in self.groups.items()
            ],
            "ranks": [{**_fact_of(place), **_evidence(each)} for place, each in self._in_order],
        }


def after_stall(found: Verdict, stall: Stall, hosts: Mapping[int, str]) -> Verdict:
    """The verdict on a rank that failed because Horovod, which waited for others, has ended the world.

    `hosts` says where each rank is.
    """
    culprit = _only_one(stall)
    what = f"Horovod has shut down after it had waited {stall.for_whom()}"
    host = hosts[culprit] if culprit is not None else None
    ended = {*found.victims, *(() if found.rank is None else (found.rank,))}
    victims = tuple(sorted(ended.difference(stall.missing)))
    return replace(found, kind=Kind.DEADLOCK, message=what, host=host, rank=culprit, exit_code=None, victims=victims)


def _only_one(stall: Stall) -> int | None:
    return next(iter(stall.missing)) if len(stall.missing) == 1 else None


def _by_rank(place: Place) -> tuple[int, str]:
    return place[1], place[0]


def _number(rank: int) -> int | None:
    return None if rank == NO_RANK else rank


def _names(places: Collection[Place]) -> str:
    """The ranks, or where there is no world the hosts."""
    ranks = [rank for _, rank in places if rank != NO_RANK]
    return names_of(ranks) if ranks else ", ".join(host for host, _ in places)


def _in_words(each: StandingRank) -> str:
    """
    >>> _in_words(StandingRank("a", output_age=3.0, kernel={"state": "S", "wchan": "futex_wait", "sockets": 2}))
    'last output 3 s ago, no checkpoint; state S in futex_wait, 0 % of a CPU, 2 sockets'
    """
    output = "no output" if each.output_age is None else f"last output {each.output_age:g} s ago"
    step = "" if each.step is None else f"step {each.step} ended {each.step_age:g} s ago, "
    checkpoint = "no checkpoint" if each.checkpoint_age is None else f"last checkpoint {each.checkpoint_age:g} s ago"
    state, place = each.kernel.get("state", "unknown"), each.kernel.get("wchan")
    where = f" in {place}" if place not in (None, "", "0") else ""
    sockets = each.kernel.get("sockets", 0)
    used = f"{100 * each.cpu:.0f} % of a CPU, {sockets} {'socket' if sockets == 1 else 'sockets'}"
    collectives = "".join(
        f"; collective {last['number']} of {last['group']}: {last['name']}, {last['state']}"
        for last in each.collectives
    )
    return f"{step}{output}, {checkpoint}; state {state}{where}, {used}{collectives}"


def _fact_of(place: Place) -> dict[str, Fact]:
    return {"host": place[0], "rank": _number(place[1])}


def _evidence(each: StandingRank) -> dict[str, Fact]:
    facts = {name: value for name, value in each._asdict().items() if name not in ("stack", "kernel")}
    return {**facts, **each.kernel}
