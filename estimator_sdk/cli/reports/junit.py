"""The end of a job as JUnit XML: a test case for each rank, or for each host where there are no ranks.

The elements are those that Jenkins' and GitLab's readers know (`junit-10.xsd` of Jenkins' xUnit plugin).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from ...job.job import Job
from . import last_words, printable

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict

    from ...job.ledger import Ledger
    from ...plan.plan import Plan, RankPlan

Outcome = Literal["passed", "failure", "error", "skipped"]


def document(job: Job, plan: Plan, ledger: Ledger | None = None) -> bytes:
    """The whole file. The rank that failed is a failure, those it took along are skipped; see `outcome`.

    Where the time went is in properties of the suite, if that is known.
    """
    words = last_words.by_rank(job)
    seconds = f"{(job.ended or 0) - (job.created or 0):.3f}" if job.ended and job.created else "0"
    cases = [_case(job, rank, words.get((rank.host, rank.rank), []), seconds) for rank in plan.ranks]
    counts = {kind: str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "error", "skipped")}
    suite = ElementTree.Element(
        "testsuite",
        name=job.name,
        tests=str(len(cases)),
        failures=counts["failure"],
        errors=counts["error"],
        skipped=counts["skipped"],
        time=seconds,
    )
    if ledger is not None:
        suite.append(_properties(ledger))
    suite.extend(cases)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites, " ")
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _properties(ledger: Ledger) -> ElementTree.Element:
    facts = {
        "goodput": f"{ledger.goodput:.4f}",
        "goodput.from": ledger.source,
        "seconds.wall": f"{ledger.wall:.3f}",
        **{f"seconds.{phase}": f"{seconds:.3f}" for phase, seconds in ledger.seconds.items()},
        "attempts": str(len(ledger.attempts)),
    }
    for cost in ledger.attempts:
        facts[f"attempt.{cost.number}.seconds"] = f"{cost.seconds:.3f}"
        facts[f"attempt.{cost.number}.steps"] = f"{cost.steps:.3f}"
        facts[f"attempt.{cost.number}.why"] = printable.one_line(cost.why)
    properties = ElementTree.Element("properties")
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    return properties


def outcome(job: Job, rank: RankPlan) -> tuple[Outcome, str]:
    """How one rank did, and why.

    A failure is the rank that the verdict names, or each rank of the host or of the job where it names no rank; one
    that was ended because of another is skipped. In a job that was stopped every rank is an error.
    """
    verdict = job.verdict
    if job.status == "Completed":
        return "passed", ""
    if verdict is None:
        return "error", f"the job is {job.status}: {job.reason}" if job.reason else f"the job is {job.status}"
    if _is_named(verdict, rank):
        return "failure", verdict.message
    if verdict.rank is None or rank.rank in verdict.victims:
        return "skipped", f"it was ended because {verdict.message}"
    return "passed", ""


def _is_named(verdict: Verdict, rank: RankPlan) -> bool:
    return (verdict.host in (None, rank.host)) and (verdict.rank in (None, rank.rank))


def _case(job: Job, rank: RankPlan, words: list[str], seconds: str) -> ElementTree.Element:
    name = rank.host if rank.rank is None else f"rank {rank.rank} on {rank.host}"
    case = ElementTree.Element("testcase", classname=job.name, name=name, time=seconds)
    kind, message = outcome(job, rank)
    if kind == "passed":
        return case
    found = ElementTree.SubElement(case, kind, message=printable.lines(message))
    if kind == "failure" and job.verdict is not None:
        found.set("type", job.verdict.kind)
        found.text = printable.lines(job.verdict.text())
    if words:
        ElementTree.SubElement(case, "system-out").text = printable.lines("\n".join(words))
    return case
