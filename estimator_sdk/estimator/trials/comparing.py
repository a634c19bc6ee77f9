"""Which runs of a script are compared: by turns, round by round, so that what else the machine does comes to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from estimator_container.contract.names import DOCTOR
from estimator_container.training.trials import words

from ...errors import JobFailed
from ...job.diagnosis import input_look, trials, world_trials
from ...job.diagnosis.comparison import Comparison, RunRates, Tried, Way
from . import window

if TYPE_CHECKING:
    from ...job.diagnosis.diagnosis import Diagnosis
    from ...job.diagnosis.input_look import InputLook
    from ...job.diagnosis.trials import Trial
    from ...job.job import Job
    from ...plan.plan import Plan

WORDS: Mapping[Way, str] = {
    Way.REPLAYED: words.REPLAY,
    Way.NO_CHECKPOINTS: words.NO_CHECKPOINTS,
    Way.WARM: words.WARM,
    Way.COLD: words.COLD,
}


@dataclass
class Runs:
    """The runs of one script. What they leave is removed, but for the last one of the script as it is."""

    plan: Callable[[Mapping[str, str], bool], Plan]
    """Makes the plan of a job with more variables, and if that is asked for of a single rank."""
    seconds: float
    """Of training steps in each run."""
    rounds: int
    say: Callable[[str], None]
    """Told of each run what it gave."""
    has_channels: bool = False
    rates: dict[Way | Trial, list[float]] = field(default_factory=dict)
    waits: dict[Way | Trial, list[float]] = field(default_factory=dict)
    """What share of a step each rank of these runs waited for input, the mean over the ranks, where that is known."""
    failed: set[Way | Trial] = field(default_factory=set)
    """With which the script fails."""
    job: Job | None = None
    """The newest one of the script as it is."""

    def compare(self, with_advice: bool) -> Comparison:
        """Run all of it."""
        self._run(Way.REAL, 0)
        assert self.job is not None
        found, look = self.job.diagnose(), self._look()
        self._run(Way.REPLAYED, 0)
        ways: list[Way | Trial] = [Way.REAL, *self._ways(found)]
        if with_advice:
            ways += self._advice(found, look)
        for number in range(self.rounds):
            start = number % len(ways)
            for way in [*ways[start:], *ways[:start]]:
                if way not in self.failed and len(self.rates.get(way, ())) <= number:  # two have been made before
                    self._run(way, number)
        if with_advice:
            ways = self._foretold(ways, self._advice(found, look))
        helped = [tried.trial for tried in self._tried(ways) if tried.helps]
        both = trials.together(helped, found, self._gain_replayed())
        for number in range(self.rounds if both else 0):
            assert both is not None
            if both not in self.failed:
                self._run(both, number)
            ways += [both] if number == 0 else []
        last = self.job.diagnose()
        rates = {way: each for way, each in self.rates.items() if isinstance(way, Way)}
        return Comparison(rates, len(last.ranks), last, look, self._tried(ways) if with_advice else None)

    def _advice(self, found: Diagnosis, look: InputLook | None) -> list[Trial]:
        """What is worth trying, with what is predicted by the rates that are known so far."""
        gain = self._gain_replayed()
        return [*trials.worth_trying(found, look, gain), *world_trials.worth_trying(found, look)]

    def _gain_replayed(self) -> float | None:
        """How many times as fast the script was with the first batch replayed; None where it failed so."""
        rates = self.rates.get(Way.REPLAYED)
        return RunRates(rates).middle / RunRates(self.rates[Way.REAL]).middle if rates else None

    def _foretold(self, ways: Sequence[Way | Trial], again: Sequence[Trial]) -> list[Way | Trial]:
        """The same ways, with what is predicted of advice by all rates but its own, and not by the first ones alone."""
        by_words = {(trial.words, trial.environment): trial for trial in again}
        newest = [way if isinstance(way, Way) else by_words.get((way.words, way.environment), way) for way in ways]
        for way, trial in zip(ways, newest, strict=True):
            for known in (self.rates, self.waits):
                if way in known:
                    known[trial] = known.pop(way)
        return newest

    def _ways(self, found: Diagnosis) -> list[Way]:
        saves = any(rank.checkpoint is not None for rank in found.ranks)
        return [
            Way.REPLAYED,
            *([Way.WARM, Way.COLD] if self.has_channels else []),
            *([Way.NO_CHECKPOINTS] if saves else []),
            *([Way.ONE_RANK] if len(found.ranks) > 1 else []),
        ]

    def _tried(self, ways: Sequence[Way | Trial]) -> list[Tried]:
        real = self.rates[Way.REAL]
        return [
            Tried(way, RunRates(real), RunRates(self.rates[way]), self.waits.get(way, ()))
            for way in ways
            if not isinstance(way, Way) and way in self.rates
        ]

    def _run(self, way: Way | Trial, number: int) -> None:
        if isinstance(way, Way):
            name, told, more, before = way.value, [WORDS[way]] if way in WORDS else [], {}, 0
        else:
            name, told, more, before = way.what, list(way.words), dict(way.environment), way.steps_before
        try:
            job, pace = self._window(told, more, way is Way.ONE_RANK, before)
        except JobFailed as error:
            if way is Way.REAL:
                raise
            self.failed.add(way)
            self.rates.pop(way, None)
            self.say(f"{name} is left out, for the script fails so: {str(error).splitlines()[0]}")
            return
        self.rates.setdefault(way, []).append(pace.rate)
        if pace.input is not None:
            self.waits.setdefault(way, []).append(pace.input)
        self.say(f"run {number + 1} of {self.rounds}, {name}: {pace}")
        if way is not Way.REAL:
            job.delete()
            return
        if self.job is not None:
            self.job.delete()
        self.job = job

    def _look(self) -> InputLook | None:
        """What the ranks do while they wait for input, in a run whose rate does not count."""
        job, _ = self._window([words.LOOK], {}, False, 0)
        found = input_look.read(job.logs(stream="stderr"))
        self.say("a run in which it was looked at what the ranks do while they wait")
        job.delete()
        return found

    def _window(
        self, told: Sequence[str], more: Mapping[str, str], is_alone: bool, steps_before: int
    ) -> tuple[Job, window.WindowPace]:
        variables = {**more, **({DOCTOR: ",".join(told)} if told else {})}
        return window.run(self.plan(variables, is_alone), self.seconds, steps_before)
