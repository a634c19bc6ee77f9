"""The table, and a job's own page: its state, its story, where its time went, what it was given; stop and retry."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...errors import EstimatorError, InvalidArgument
from ...job import accounting
from ...job.job import Job
from ...spec import masking
from ...values.home import JobFolder, regular_file
from ..jobs import control, difference, table
from ..jobs.timeline_rows import MOST_STEP_SLICES
from ..logs import pieces
from ..logs.selection import is_here, select
from ..state import reckoned
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from ...backends.port import State
    from ..jobs.story import Story
    from ..state import Console
    from .operation import Values

_MOST_PLAN = 1 << 20  # bytes


def _table(console: Console, values: Values) -> object:
    found = table.page_of(
        console.index.all(),
        values.text("text") or "",
        values.text("status") or "",
        values.text("backend") or "",
        values.text("sort") or "-created",
        values.number("limit") or 50,
        values.text("cursor"),
    )
    rows = [table.document_of(each) for each in found.rows]
    return {"jobs": rows, "total": found.total, "next": found.next, "counts": console.index.counts()}


def _job(console: Console, values: Values) -> object:
    job = console.job(values.job)
    state = job.record()
    return {
        "name": state.name,
        "status": state.status,
        "backend": state.backend,
        "hosts": list(state.hosts),
        "created": state.created,
        "ended": state.ended,
        "is_final": state.is_final,
        "reason": state.reason,
        "verdict": asdict(state.verdict) if state.verdict else None,
        "why": Job(job).why() if state.is_final and state.status != "Completed" else "",
        "attempts": [asdict(each) for each in state.attempts],
        "model_data": state.model_data,
        "output": state.output if state.is_final else "",
        "has_logs": is_here(job),
        "now": time.time(),
    }


def _read(console: Console, values: Values) -> tuple[Story, dict[str, object], State]:
    """The story of the attempt that is asked for, what every answer about it says, and the state of the job."""
    job = console.job(values.job)
    state = job.record()
    attempt = values.number("attempt") or max(1, len(state.attempts))
    selection = select(job, attempt, None, None, None)
    story = console.story(job.name, state.created, attempt)
    return story, {"attempt": attempt, "is_complete": story.update(selection)}, state


def _story(console: Console, values: Values) -> object:
    story, about, state = _read(console, values)
    return {**about, "now": "" if state.is_final else story.now(), **story.to_json()}


def _timeline(console: Console, values: Values) -> object:
    story, about, state = _read(console, values)
    attempts = state.attempts[: int(str(about["attempt"]))]
    ended = attempts[-1].ended or state.ended if attempts else state.ended
    return {**about, "ended": ended, "now": time.time(), "rows": story.timeline()}


def _ledger(console: Console, values: Values) -> object:
    job = console.job(values.job)
    size = pieces.check_whole(job.name, job.log_files(), f"estimator describe {job.name}")
    ledger = reckoned(console.ledgers, job, size, accounting.of_job)
    return {**ledger.to_json(), "sentence": ledger.sentence()}


def _inputs(console: Console, values: Values) -> object:
    job = console.job(values.job)
    plan = ""
    try:
        with open(JobFolder(job.path).plan, encoding="utf-8", errors="replace", opener=regular_file) as file:
            plan = file.read(_MOST_PLAN)
    except (EstimatorError, OSError):  # it runs elsewhere
        pass
    request: dict[str, Any] = dict(masking.in_document(job.request()))
    return {"request": request, "plan": plan}


def _difference(console: Console, values: Values) -> object:
    other = values.text("other")
    if other is None:
        raise InvalidArgument("other", "other: say with which job this one is compared")
    return difference.between(console.job(values.job), console.job(other))


def _stop(console: Console, values: Values) -> object:
    return {"said": control.stop(console.job(values.job))}


def _retry(console: Console, values: Values) -> object:
    try:
        return {"name": control.retry(console.job(values.job))}
    except InvalidArgument as error:
        raise EstimatorError(f"{values.job} cannot be run again from here: {error}") from None


OPERATIONS = (
    Operation(
        "/api/jobs",
        "The jobs, a page at a time.",
        (
            Parameter("text", "string", "Only jobs with this in their name."),
            Parameter("status", "string", "Only jobs with this status."),
            Parameter("backend", "string", "Only jobs of this backend."),
            Parameter(
                "sort",
                "string",
                "created, name, status, backend, hosts or seconds; - before it turns it round.",
                "-created",
            ),
            Parameter("limit", "integer", "Jobs of one page.", 50, 1, table.MOST_ROWS),
            Parameter("cursor", "string", "`next` of the page before."),
        ),
        _table,
    ),
    Operation("/api/jobs/{job}", "The state of a job: its status, its verdict, its attempts.", (), _job),
    Operation(
        "/api/jobs/{job}/story",
        "What the hosts of a job have told: phases, ranks, notes, checkpoints, and where ranks are that stand still. "
        "Ask again until `is_complete`.",
        (Parameter("attempt", "integer", "The number of an attempt; the newest without it.", None, 1),),
        _story,
    ),
    Operation(
        "/api/jobs/{job}/timeline",
        "What the hosts and ranks of an attempt did when, as `estimator timeline` has it, with at most "
        f"{MOST_STEP_SLICES} slices of steps a rank. Ask again until `is_complete`.",
        (Parameter("attempt", "integer", "The number of an attempt; the newest without it.", None, 1),),
        _timeline,
    ),
    Operation("/api/jobs/{job}/ledger", "Where the time of a job went.", (), _ledger, is_slow=True),
    Operation(
        "/api/jobs/{job}/inputs",
        "The CreateTrainingJob document of a job, and its plan; secrets are hidden.",
        (),
        _inputs,
    ),
    Operation(
        "/api/jobs/{job}/difference",
        "What another job has in another way: the lines of the CreateTrainingJob document, and of the files of the "
        "code, as in a unified diff. Secrets in the document are hidden.",
        (Parameter("other", "string", "The name of the other job."),),
        _difference,
        is_slow=True,
    ),
    Operation("/api/jobs/{job}/stop", "Ask a job to stop.", (), _stop, method="POST"),
    Operation("/api/jobs/{job}/retry", "Run a job that has ended again, under a new name.", (), _retry, method="POST"),
)
