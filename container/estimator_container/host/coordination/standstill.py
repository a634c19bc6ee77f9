"""What the first host makes of ranks that stand still: whether somebody is told, and when the job ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...contract.events import RanksMove, RanksStand
from ...failures.hangs.awake_time import AwakeTime
from ...failures.hangs.report import HangRule, rule_for
from ...failures.verdict import Verdict

if TYPE_CHECKING:
    from ...contract.settings import Settings
    from ...failures.hangs.standing import StandingRank
    from ...logs.events import EventLog
    from ...runtime.loop import Loop, Timer
    from .step_run import StepRun

EARLY = 0.01  # seconds by which a timer may come early


class Standstill:
    """Hears which hosts' ranks stand still, and judges once those of all do."""

    def __init__(
        self, loop: Loop, events: EventLog, run: StepRun, settings: Settings, report: Callable[[Verdict], object]
    ) -> None:
        self._loop = loop
        self._now = AwakeTime(loop)
        self._events = events
        self._run = run
        self._floor = settings.hang_floor
        self._ceiling = settings.hang_timeout
        self._report = report
        self._since: dict[str, float] = {}
        self._shown: HangRule | None = None
        self._timer: Timer | None = None

    def hear(self, host: str, standing: Mapping[int, StandingRank] | None, seconds: float) -> None:
        """The ranks of a host have stood still for so many seconds, or with None do so no longer."""
        self._run.standing[host] = standing or {}
        self._since[host] = self._now() - seconds
        self._judge()

    def rank_ended(self) -> None:
        """One has, and others may have waited for that: their time begins anew."""
        self._since = dict.fromkeys(self._since, self._now())
        self._judge()

    def _judge(self) -> None:
        self._stop_timer()
        standing = self._run.all_standing()
        if standing is None:
            self._moved()
            return
        seconds = self._now() - max(self._since[host] for host, _ in standing)
        bound = min(self._run.bounds.values(), default=self._ceiling)
        rule = rule_for(standing, bound, self._floor, self._ceiling)
        finding = self._run.finding(standing, seconds, rule)
        ends = seconds + EARLY >= rule.seconds
        if ends or self._shown != rule:
            self._shown = rule
            self._events.emit(RanksStand(round(seconds, 1), finding.sentence, finding.facts()))
        if ends:
            self._report(finding.verdict())
        else:
            self._timer = self._loop.after(rule.seconds - seconds, self._judge)

    def close(self) -> None:
        """Judge no more."""
        self._stop_timer()
        self._now.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _moved(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._events.emit(RanksMove())
