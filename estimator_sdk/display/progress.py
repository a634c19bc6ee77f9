"""What `fit()` shows while a job runs: the ranks' lines, and a line of its own for each step of the job."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ..values.naming import size, some
from ..values.standard_streams import Stream, Tolerant, can_redraw

if TYPE_CHECKING:
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
        self._reached: dict[str, set[str]] = {}
        self._open_line = False
        self._live_line: LiveLine | None = None

    def started(self) -> None:
        """Show the first line: the job's name, its hosts and processes, and its backend."""
        plan = self._plan
        processes = f" x {_count(plan.processes_per_host, 'process', 'processes')} ({plan.distribution})"
        world = "" if plan.distribution == "none" else processes
        self.say(f"{plan.job_name} on {_count(len(plan.hosts), 'host', 'hosts')}{world}, backend {plan.backend}")

    def on_event(self, host: str, event: dict[str, Any]) -> None:
        """A phase is shown once all hosts are in it; and of channels and checkpoints what their user should know."""
        kind, phase = event["event"], event.get("phase")
        if kind == "channel_progress":
            self._show_channel(event)
        said = sentence_about(event)
        if said is not None:
            self.say(said)
        if kind == "attempt_failed":
            self._reached.clear()
        if kind != "phase_started" or phase not in _PHASES:
            return
        self._reached.setdefault(phase, set()).add(host)
        if len(self._reached[phase]) == len(self._plan.hosts):
            self.say(_PHASES[phase])

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

    def ended(self, job: StartedJob) -> None:
        """How the job ended, what it left, and where to find more."""
        state = job.record()
        self.say(f"{state.status}: {state.reason}" if state.reason else state.status)
        if state.model_data is not None:
            self.say(f"model  {state.model_data}")
        for path in job.log_files():
            self.say(f"log    {path}")
        self.say(f'see also: estimator logs|why|download {job.name}, or Job.attach("{job.name}")')

    def again(self) -> Progress:
        """What shows a job that tells everything from the start once more: its steps, and not its lines."""
        return Progress(self._plan, "none", self._out)

    def close(self) -> None:
        """Leave a terminal as it should be."""
        self._end_open_line()

    def say(self, text: str) -> None:
        """A line of our own, with the seconds since the start."""
        self._end_open_line()
        self._out.write(f"{self._stamped(text)}\n")
        self._out.flush()

    def _shows(self, rank: int | None) -> bool:
        return self._logs == "all" or (self._logs == "rank0" and rank in (0, None))

    def _show_channel(self, event: dict[str, Any]) -> None:
        if can_redraw(self._out):
            rate = size(event["bytes"] / max(event["seconds"], 0.01))
            shown = self._stamped(f"fetching {event['channel']}: {_amount(event)}, {rate}/s")
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


def sentence_about(event: dict[str, Any]) -> str | None:
    """What the user of a job should know of an event; None where it is nothing."""
    about = _ABOUT.get(event["event"])
    return about(event) if about is not None else None


def _restored(event: dict[str, Any]) -> str | None:
    passed_over = "".join(f"; incomplete: {each}" for each in event["passed_over"])
    if not event["files"]:
        return None
    where = "the plain tree" if event["base"] == "plain" else f"snapshot {event['base']}"
    return f"checkpoints: {_count(event['files'], 'file', 'files')} ({size(event['bytes'])}) from {where}{passed_over}"


def _lag(event: dict[str, Any]) -> str:
    names = _shown(event["open"])
    waits = f", waiting for {names}, which is open for writing" if names else ""
    return f"checkpoints: {size(event['bytes'])} not uploaded for {event['seconds']:.0f} s{waits}"


def _failed(event: dict[str, Any]) -> str:
    return f"checkpoints: {event['reason']}"


def _left_out(event: dict[str, Any]) -> str:
    return f"checkpoints: not saved until closed: {_shown(event['files'])}"


def _outputs_failed(event: dict[str, Any]) -> str:
    return f"outputs: {event['reason']}; trying again"


def _outputs_left_out(event: dict[str, Any]) -> str:
    return f"outputs: not uploaded: {event['reason']}"


def _attempt_failed(event: dict[str, Any]) -> str:
    return f"attempt {event['attempt']} failed: {event['reason']}; trying again"


def _horovod_stalled(event: dict[str, Any]) -> str:
    from estimator_container.failures.horovod_stalls import Stall  # a job that goes on has no need of it

    return Stall(event["seconds"], {int(rank): tuple(names) for rank, names in event["missing"].items()}).sentence()


def _service_status(event: dict[str, Any]) -> str:
    return f"{event['status']}: {event['message']}" if event["message"] else str(event["status"])


_ABOUT: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "channel_fetching": lambda event: f"fetching {event['channel']} from {event['source']}",
    "channel_piped": lambda event: f"piping {event['channel']} from {event['source']}",
    "channel_fetched": lambda event: f"fetched {event['channel']}: {_amount(event)} in {event['seconds']:.1f} s",
    "checkpoint_restored": _restored,
    "checkpoint_lag": _lag,
    "checkpoint_failed": _failed,
    "checkpoint_left_out": _left_out,
    "outputs_failed": _outputs_failed,
    "outputs_left_out": _outputs_left_out,
    "attempt_failed": _attempt_failed,
    "horovod_stalled": _horovod_stalled,
    "service_status": _service_status,
}


def _shown(names: list[str]) -> str:
    """Names of files, which may be anything: one that would not show as it is stands as a literal."""
    return some([name if name.isprintable() else repr(name) for name in names])


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _amount(event: dict[str, Any]) -> str:
    return f"{size(event['bytes'])} in {_count(event['objects'], 'object', 'objects')}"
