"""The end of a job as Markdown, which GitHub and GitLab show beside a run."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ...job.job import Job
from . import junit, last_words, printable

if TYPE_CHECKING:
    from ...job.ledger import Ledger
    from ...plan.plan import Plan

_SIGNS = {"passed": "passed", "failure": "**failed**", "error": "**stopped**", "skipped": "ended with the others"}
_MARKDOWN = re.compile(r"[`|\\]|^\s|\s$|^$")
"""What a code span in a table cannot hold as it is."""
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9 ]")


def markdown(job: Job, plan: Plan, code: int, ledger: Ledger | None = None) -> str:
    """What ran, how each rank ended, and of a failure the verdict and the last lines of the ranks that failed.

    Of several attempts it has what each cost and why it ended, if there is a ledger.
    """
    world = f"{len(plan.hosts)} x {plan.processes_per_host} ({plan.distribution})"
    facts = {
        **_what_runs(plan),
        "hosts x processes": world,
        "backend": plan.backend,
        "exit code": str(code),
        "time": f"{job.ended - job.created:.1f} s" if job.ended and job.created else "-",
        **({"goodput": ledger.sentence().removeprefix("goodput ")} if ledger is not None else {}),
        "model": _code(job.model_data) if job.model_data else "-",
    }
    lines = [f"### {job.name}: {job.status}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    if ledger is not None and len(ledger.attempts) > 1:
        lines += ["", "| attempt | time | steps that survive | |", "|---|---|---|---|", *_rows(ledger)]
    lines += ["", "| rank | host | |", "|---|---|---|"]
    outcomes = {rank: junit.outcome(job, rank)[0] for rank in plan.ranks}
    lines += [f"| {'-' if r.rank is None else r.rank} | {r.host} | {_SIGNS[o]} |" for r, o in outcomes.items()]
    if job.verdict is not None:
        lines += ["", *_block(job.verdict.text().rstrip())]
    elif job.reason:
        lines += ["", *_block(job.reason)]
    failed = [rank for rank, outcome in outcomes.items() if outcome in ("failure", "error")]
    words = last_words.by_rank(job) if failed else {}
    for rank in failed:
        said = words.get((rank.host, rank.rank))
        if said:
            who = rank.host if rank.rank is None else f"rank {rank.rank} on {rank.host}"
            lines += ["", f"The last lines of {who}:", "", *_block("\n".join(said))]
    return "\n".join([*lines, "", ""])


def _rows(ledger: Ledger) -> list[str]:
    """One for each attempt."""
    return [
        f"| {cost.number} | {cost.seconds:.1f} s | {cost.steps:.1f} s | {_code(cost.why) if cost.why else ''} |"
        for cost in ledger.attempts
    ]


def _what_runs(plan: Plan) -> dict[str, str]:
    if plan.steps:
        return {f"step {_code(step.name)}": _code(shlex.join(step.command)) for step in plan.steps}
    return {"command": _code(shlex.join(plan.command)) if plan.command else "the image's own"}


def _code(text: str) -> str:
    """Text in a cell of a table, as it is: in HTML where Markdown would read something of its own in it.

    In a table a backslash before a pipe has more than one meaning, even between backticks ("Tables", GFM).
    """
    shown = printable.one_line(text)
    if not _MARKDOWN.search(shown):
        return f"`{shown}`"
    return f"<code>{_NOT_PLAIN.sub(lambda match: f'&#{ord(match[0])};', shown)}</code>"


def _block(text: str) -> list[str]:
    shown = printable.lines(text)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", shown))])
    return [fence, shown, fence]
