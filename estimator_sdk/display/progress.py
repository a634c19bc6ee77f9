"""What `fit()` shows while a job runs: the ranks' lines, and a line of its own for each step of the job."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Literal

from estimator_container.contract.agent_events import ChannelProgress
from estimator_container.contract.events import AttemptFailed, PhaseStarted, Stopping

from ..telemetry.kept import Kept
from ..telemetry.sentences import amount, counted, sentence_about
from ..values.naming import size
from ..values.standard_streams import Stream, Tolerant, can_redraw

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent
    from estimator_container.logs.lines import Block, Line

    from ..backends.port import StartedJob
    from ..plan.plan import Plan
    from .live_line import LiveLine

Logs = Literal["all", "rank0", "none"]
LOGS: tuple[Logs, ...] = ("all", "rank0", "none")
_PHASES = {
    "requirements": "installing requirements",
    "world": "assembling the world",
    "run": "running",
}


class Progress:
    """Writes to one text stream, which a notebook or a terminal shows.

    A stream that does not take it is no reason to leave the job alone: what is not taken is dropped.
    """

    def __init__(self, plan: Plan, logs: Logs, out: Stream | None = None) -> None:
        self._plan = plan
        self._logs = logs
        self._out = Tolerant(sys.stdout if out is None else out)
        self._started = time.monotonic()
        self._told: Counter[str] = Counter()
        """How often each step was told, by this or in the log."""
        self._known: Counter[str] = Counter()
        """How often it was before, to who sees this one, too."""
        self._reached: dict[str, set[str]] = {}
        self._is_stopping = False
        self._kept = Kept()
        self._open_line = False
        self._live_line: LiveLine | None = None

    def started(self) -> None:
        """Show the first line: the job's name, its hosts and processes, and its backend."""
        plan = self._plan
        processes = f" x {counted(plan.processes_per_host, 'process', 'processes')} ({plan.distribution})"
        world = "" if plan.distribution == "none" else processes
        self.say(f"{plan.job_name} on {counted(len(plan.hosts), 'host', 'hosts')}{world}, backend {plan.backend}")

    def on_event(self, host: str, event: AnyEvent) -> None:
        """Show what the user should know, a phase once all hosts are in it.

        What the toolkit says of an event itself is not said twice.
        """
        about, kept = sentence_about(host, event), self._kept.take(event)
        if about is not None:
            self._say_step(about, in_log=event.is_said and self._shows(None))
        if kept is not None:
            self._say_step(kept)
        if isinstance(event, ChannelProgress):
            self._show_channel(event)
        elif isinstance(event, PhaseStarted):
            self._show_phase(host, event.phase)
        elif isinstance(event, Stopping):
            self._show_stopping()
        elif isinstance(event, AttemptFailed):
            self._reached.clear()

    def on_block(self, block: Block) -> None:
        """Show lines of the log, as they are but for bytes that are no text."""
        if self._shows(block.rank):
            self._end_open_line()
            self._out.write(block.tagged().decode("utf-8", "backslashreplace"))
            self._out.flush()

    def on_open_line(self, line: Line) -> None:
        """Show, on a terminal, how a line goes on that has no end yet, until the next whole one takes its place."""
        if not self._shows(line.rank) or not can_redraw(self._out):
            return
        if self._live_line is None:
            from .live_line import LiveLine

            self._live_line = LiveLine()
        text = self._live_line.text_of(line)
        if text is not None:
            self._out.write(text)
            self._out.flush()
            self._open_line = True

    def ended(self, job: StartedJob, goodput: str = "") -> None:
        """How the job ended, a sentence on its goodput if there is one, what it left, and where to find more."""
        state = job.record()
        self.say(f"{state.status}: {state.reason}" if state.reason else state.status)
        if goodput:
            self.say(goodput)
        if self._kept.checkpoints:
            self.say(f"kept   {self._kept.checkpoints}")
        if state.model_data is not None:
            self.say(f"model  {state.model_data}")
        for path in job.log_files():
            self.say(f"log    {path}")
        self.say(f'see also: estimator logs|why|download {job.name}, or Job.attach("{job.name}")')

    def again(self) -> Progress:
        """What shows a job that tells everything from the start once more: the steps not shown yet, and no lines."""
        more = Progress(self._plan, "none", self._out)
        more._started = self._started
        more._known = self._told.copy()
        return more

    def close(self) -> None:
        """Leave a terminal as it should be."""
        self._end_open_line()

    def say(self, text: str) -> None:
        """A line of our own, with the seconds since the start."""
        self._end_open_line()
        self._out.write(f"{self._stamped(text)}\n")
        self._out.flush()

    def _say_step(self, text: str, in_log: bool = False) -> None:
        self._told[text] += 1
        if self._known[text] > 0:
            self._known[text] -= 1
        elif not in_log:
            self.say(text)

    def _shows(self, rank: int | None) -> bool:
        return self._logs == "all" or (self._logs == "rank0" and rank in (0, None))

    def _show_phase(self, host: str, phase: str) -> None:
        if phase not in _PHASES:
            return
        self._reached.setdefault(phase, set()).add(host)
        if len(self._reached[phase]) == len(self._plan.hosts):
            self._say_step(_PHASES[phase])

    def _show_stopping(self) -> None:
        """Once, for all hosts are told to within moments."""
        if not self._is_stopping:
            self._is_stopping = True
            self._say_step("stopping")

    def _show_channel(self, event: ChannelProgress) -> None:
        if can_redraw(self._out):
            rate = size(event.bytes / max(event.seconds, 0.01))
            shown = self._stamped(f"fetching {event.channel}: {amount(event)}, {rate}/s")
            self._out.write(f"\r{shown}\x1b[K")
            self._out.flush()
            self._open_line = True

    def _stamped(self, text: str) -> str:
        return f"estimator {time.monotonic() - self._started:6.1f} s  {text}"

    def _end_open_line(self) -> None:
        """What was shown as it went on gives way to the next line."""
        if self._open_line:
            self._out.write("\r\x1b[K")
            self._open_line = False
