"""How much of their rate examples lose to input, as they are and with what the doctor advises, over the ranks."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path

from estimator_container.contract.names import DOCTOR
from estimator_container.training.trials import words

from estimator_sdk import Estimator

from . import results
from .harness import ROOT, Case, Extent, Metric, Panel, Role, Table, Target, Way
from .jobs import own_home
from .paces import Pace, paces

REAL, REPLAYED = "as it is", "first batch replayed"
LEFT = 2.0
"""Per cent of the rate with the first batch replayed that may be lost with advice."""
RANKS = (1, 2, 4, 8)
PARTS, TURNS = 4, 1
BATCH = 32
"""Images a step on each rank, of all examples."""
ENDLESS = 1_000_000  # epochs; the run is stopped


@dataclass(frozen=True)
class Run:
    """One way in which an example runs: what its ranks are told, as the doctor tells them, and its own arguments."""

    told: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    most_ranks: int = RANKS[-1]


@dataclass(frozen=True)
class Example:
    """A script of `entrypoints`, and what the doctor advises for it."""

    name: str
    script: str
    remedies: Mapping[str, Run]
    advised: str
    """The remedy that the doctor says helps most."""

    @property
    def runs(self) -> dict[str, Run]:
        """All ways in which it is run."""
        return {REAL: Run(), **self.remedies, REPLAYED: Run((words.REPLAY,))}

    def estimator(self, way: str, ranks: int) -> Estimator:
        """The job of one of them, which trains for ever."""
        run = self.runs[way]
        return Estimator(
            entry_point=self.script,
            source_dir=ROOT / "entrypoints",
            backend="process",
            distribution={"mpi": {"enabled": True, "processes_per_host": ranks}},
            arguments=["--epochs", str(ENDLESS), *run.arguments],
            environment={DOCTOR: ",".join(run.told)} if run.told else {},
            base_job_name="bench",
        )


@dataclass
class InputGap:
    """What an example has given."""

    example: Example
    paces: dict[int, dict[str, list[Pace]]] = field(default_factory=dict)
    """By the number of ranks and the way, of each part of the turns: in a part, all ways find the same machine."""
    _read: Counter[tuple[int, str]] = field(default_factory=Counter)
    """How many parts of each have been read."""

    @property
    def _draft(self) -> Path:
        """What has been measured so far: a run that is cut off goes on there, as long as the commit is the same."""
        return ROOT / "build" / "benchmarks" / f"{self.example.name}-{results.commit()}.json"

    def _read_draft(self) -> None:
        drafted = json.loads(self._draft.read_text(encoding="utf-8")) if self._draft.exists() else {}
        for ranks, ways in drafted.items():
            self.paces[int(ranks)] = {way: [Pace(*each) for each in parts] for way, parts in ways.items()}

    def _write_draft(self) -> None:
        paces = {n: {way: list(map(astuple, each)) for way, each in ways.items()} for n, ways in self.paces.items()}
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._draft.write_text(json.dumps(paces), encoding="utf-8")

    def cases(self, extent: Extent) -> Iterator[Case]:
        self.paces.clear()
        self._read.clear()
        self._read_draft()
        roles: Mapping[str, Role] = {self.example.advised: "ours", REPLAYED: "floor"}
        target = Target(self.example.advised, plus=LEFT)
        panels = (
            Panel(f"{self.example.name}, all ranks together", "ranks", "samples/s", higher_is_better=True),
            Panel(f"{self.example.name}: what is lost to input", "ranks", "%", (target,)),
            Panel(f"{self.example.name}: the share of a step that waits for input", "ranks", "%", (target,)),
        )
        with own_home():
            for ranks in extent.pick(RANKS, RANKS[:2]):
                ways = (
                    Way(way, roles.get(way, "peer"), partial(self._reading, way, ranks), at_most=PARTS)
                    for way in self._ways(ranks)
                )
                yield Case(panels, ranks, tuple(ways), runs=PARTS)
        self._draft.unlink()

    def _ways(self, ranks: int) -> list[str]:
        return [way for way, run in self.example.runs.items() if run.most_ranks >= ranks]

    def _reading(self, way: str, ranks: int) -> tuple[float, float | None, float | None]:
        """Of one part more: images a second, what is lost of those with the first batch replayed, and what waits."""
        if ranks not in self.paces:
            jobs = {name: partial(self.example.estimator, name, ranks) for name in self._ways(ranks)}
            self.paces[ranks] = paces(jobs, PARTS, TURNS)
            self._write_draft()
        part = self._read[ranks, way]
        self._read[ranks, way] += 1
        pace, replayed = self.paces[ranks][way][part], self.paces[ranks][REPLAYED][part]
        lost = None if way == REPLAYED else 100 * (1 - pace.rate / replayed.rate)
        return BATCH * ranks * pace.rate, lost, None if pace.input is None else 100 * pace.input

    def tables(self) -> Sequence[Table]:
        """Images a second, how they scale, and their share of those with the first batch replayed."""
        ways = [REPLAYED, *(way for way in self.example.runs if way != REPLAYED)]
        header = ("ranks", *(word for way in ways for word in (way, "scaling", "share")))
        rows = tuple((str(ranks), *(cell for way in ways for cell in self._cells(ranks, way))) for ranks in self.paces)
        return (Table("Images a second, how they scale, and their share", header, rows, ABOUT_TABLE),)

    def _cells(self, ranks: int, way: str) -> tuple[str, str, str]:
        if way not in self.paces[ranks]:
            return "", "", ""
        rate, alone = self._rate(ranks, way), self._rate(min(self.paces), way)
        share = rate / self._rate(ranks, REPLAYED)
        return f"{BATCH * ranks * rate:,.0f}", f"{rate / alone:.0%}", f"{share:.0%}"

    def _rate(self, ranks: int, way: str) -> float:
        """Steps a second of a rank."""
        return statistics.median(pace.rate for pace in self.paces[ranks][way])


ABOUT_TABLE = (
    "The medians. Scaling is the rate of a rank beside that of one alone; all ranks share the CPUs of one machine, so "
    "with more ranks than CPUs it cannot be 100 %. The share is that of the rate with the first batch replayed."
)


def metric(number: str, example: Example, about: str) -> Metric:
    """What an example loses to input."""
    taken = InputGap(example)
    return Metric(number, f"The input of the {example.name}", f"{about} {ABOUT}", taken.cases, tables=taken.tables)


ABOUT = (
    "The same script runs as it is, with what the doctor advises, and with its first batch replayed, which is as fast "
    "as it can be without waiting for input. The jobs of all ways are under way at once and take turns of 1.5 seconds, "
    "in which the others are frozen; the steps of rank 0 are counted, from the end of one to the end of another, and "
    "only a way's own turns count. What is lost is what the rate of a turn lacks of that with the first batch replayed "
    "in the turn beside it; what waits for input is told by the clock of rank 0."
)
