"""A window of a job's timeline in detail, asked for while the job runs: what its ranks record of it by themselves.

The hosts find the request in their folders, tell their ranks, and leave what these recorded; see `host.windows` and
`training.window` of the toolkit.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract.names import Layout

from ...backends.port import RecordsWindows
from ...errors import EstimatorError, InvalidArgument
from ...telemetry.machines import host_of, logs_here
from ...values import strict_json
from ...values.home import regular_file
from . import window_trace
from .trace import clock_offsets, layout_of
from .window_trace import RankRecord

if TYPE_CHECKING:
    from ...backends.port import StartedJob

MOST_SECONDS = 600.0
BEGIN_SECONDS = 30.0  # in which hosts, which look once a second, begin a window
LATE_SECONDS = 120.0  # that ranks have for the step in which the window ends, and to write what they recorded
CLOCK_SECONDS = 5.0  # after the window, in which the first host, which begins to compare the clocks with it, is to end
LOOK_SECONDS = 0.2
FILE = "horovod_timeline.json"
"""What the merged trace is called in the outputs of the job's first host."""


@dataclass(frozen=True)
class RecordedWindow:
    """A window that is over."""

    trace: dict[str, Any]
    """In the Trace Event Format, which Perfetto opens."""
    notes: tuple[str, ...]
    """What it has not, and why: sentences."""
    kept: str | None
    """The trace's path among the outputs of the first host; None where it could not be put there."""


def record(job: StartedJob, seconds: float) -> RecordedWindow:
    """Have the ranks of a job record what they do for so many seconds, from one end of a step to another.

    Raises InvalidArgument for a time that is too short or too long, and EstimatorError for a job that has ended, that
    runs elsewhere, or in which no rank counts its steps.
    """
    if not 0 < seconds <= MOST_SECONDS:
        raise InvalidArgument("seconds", f"seconds must be more than 0 and at most {MOST_SECONDS:g}, not {seconds:g}")
    hosts = _hosts(job)
    if not isinstance(job, RecordsWindows):
        what = f"{job.name} runs on {job.record().backend}, where the hosts of a job cannot be asked for a window"
        raise EstimatorError(f"{what}; its script can record one itself")
    number = time.time_ns() // 1_000_000
    job.ask_for_window(json.dumps({"number": number, "seconds": seconds}))
    try:
        expected = _begun(job, hosts, number)
        records, missing = _collect(job, hosts, number, expected, seconds)
    finally:
        job.withdraw_window()
    if not records:
        raise EstimatorError(f"no rank of {job.name} recorded anything: {'; '.join(missing)}; try again")
    offsets, unknown = _clocks(job, hosts)
    trace, unread = window_trace.merge(job.name, records, offsets)
    notes = [*missing, *unknown, *_said(records), *unread]
    return RecordedWindow(trace, tuple(notes), _keep(trace, job, notes))


def _hosts(job: StartedJob) -> dict[str, Layout]:
    """The hosts of the current attempt, by their names."""
    state = job.record()
    if state.is_final:
        what = f"{job.name} has ended, and a window is recorded while a job runs"
        raise EstimatorError(f"{what}; without --seconds, `estimator timeline {job.name}` shows its steps and phases")
    logs = {host_of(log): log for log in logs_here(job)}  # of several attempts the last
    found = {host: layout_of(log) for host, log in logs.items()}
    if not found:
        raise EstimatorError(f"{job.name} has no hosts yet; try again when its ranks train")
    return found


def _waits(job: StartedJob, seconds: float) -> Iterator[None]:
    """Look again and again, until the time is over; once more after the job has ended."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > deadline or job.record().is_final:
            break
        job.wait(LOOK_SECONDS)
    yield


def _begun(job: StartedJob, hosts: dict[str, Layout], number: int) -> dict[str, list[int | None]]:
    """Wait for the hosts to begin; returns the ranks of each that record."""
    found: dict[str, list[int | None]] = {}
    for _ in _waits(job, BEGIN_SECONDS):
        for host, layout in hosts.items():
            with contextlib.suppress(OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
                if host not in found:
                    path = Path(layout.timelines, f"{number}.json")
                    with open(path, encoding="utf-8", opener=regular_file) as file:
                        ranks = json.load(file)["ranks"]
                    found[host] = [None if rank is None else int(rank) for rank in ranks]
        if len(found) == len(hosts):
            break
    late = [host for host in hosts if host not in found]
    if late:
        why = "another window is recorded, or its toolkit is older than this SDK"
        if job.record().is_final:
            why = f"{job.name} ended"
        elif not Path(hosts[late[0]].training_steps).exists():  # which a host writes before its ranks begin
            why = "its ranks have not begun, or another window is recorded"
        raise EstimatorError(
            f"{', '.join(late)} did not begin the window in {BEGIN_SECONDS:g} s: {why}; try again later"
        )
    if not any(found.values()):
        raise EstimatorError(
            f"no rank of {job.name} counts its training steps so far, and a window begins and ends with a step; ask "
            "when it trains with Keras 3 or PyTorch, or have the script call estimator_container.training.mark_step()"
        )
    return found


def _collect(
    job: StartedJob, hosts: dict[str, Layout], number: int, expected: dict[str, list[int | None]], seconds: float
) -> tuple[list[RankRecord], list[str]]:
    """Wait for what the ranks recorded; returns it, and who recorded nothing."""
    left = {(host, rank) for host, ranks in expected.items() for rank in ranks}
    records: dict[tuple[str, int | None], RankRecord] = {}
    for _ in _waits(job, seconds + LATE_SECONDS):
        for host, rank in sorted(left, key=str):
            with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
                records[host, rank] = RankRecord.read(host, _file(hosts[host], number, rank))
        left -= records.keys()
        if not left:
            break
    late = [f"{window_trace.name_of_rank(rank)} on {host}" for host, rank in sorted(left, key=str)]
    missing = [f"{', '.join(late)} ended no step in which a window could begin and end"] if late else []
    order = sorted(records.values(), key=lambda each: (list(hosts).index(each.host), str(each.rank).zfill(9)))
    return order, missing


def _clocks(job: StartedJob, hosts: dict[str, Layout]) -> tuple[dict[str, float], list[str]]:
    """How far the clocks of hosts are ahead of that of the first one; and which of them are not known."""
    first, *others = hosts
    found: dict[str, float] = {}
    for _ in _waits(job, CLOCK_SECONDS):
        found = clock_offsets(Path(hosts[first].clocks))
        if found.keys() >= set(others):
            break
    unknown = [host for host in others if host not in found]
    sentence = f"the clock of {first} was not compared with that of {', '.join(unknown)}, whose steps may be shifted"
    return found, [sentence] if unknown else []


def _file(layout: Layout, number: int, rank: int | None) -> Path:
    from estimator_container.training.window import name_of

    return Path(layout.timelines, name_of(number, rank))


def _said(records: list[RankRecord]) -> list[str]:
    """What ranks say they could not record, each sentence once, with who says it."""
    by_sentence: dict[str, list[str]] = {}
    for record in records:
        for sentence in record.said:
            by_sentence.setdefault(sentence, []).append(record.name)
    return [
        f"{', '.join(names[:4])}{' and others' if len(names) > 4 else ''}: {said}"
        for said, names in by_sentence.items()
    ]


def kept(job: StartedJob) -> Path | None:
    """The merged trace among the outputs of a job, while it is there. Raises EstimatorError as `logs_here`."""
    for log in logs_here(job)[-len(job.record().hosts) :]:
        path = Path(layout_of(log).output_data, FILE)
        if path.is_file() and not path.is_symlink():
            return path
    return None


def _keep(trace: dict[str, Any], job: RecordsWindows, notes: list[str]) -> str | None:
    try:
        return str(job.add_output(FILE, strict_json.dumps(trace)))
    except (OSError, EstimatorError) as error:
        notes.append(f"it could not be put among the outputs of the job: {error}")
        return None
