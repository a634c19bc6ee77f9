"""`estimator doctor`: check what is installed, and say how to fix what is missing; with JOB, why a job is slow.

`estimator doctor run` is `doctor_run`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from ... import backends
from ...backends.port import Finding, Probes
from ...errors import InvalidArgument
from ...values.naming import suggestion
from .. import answer, job_argument
from ..parser import Parser
from ..reports.diagnosis import PURPOSES, every_finding, purposes

WITHIN = {"run": "doctor_run"}
"""It takes the options of `estimator run`, and not those here."""


def add(parser: Parser) -> None:
    parser.add_argument(
        "job",
        metavar="JOB",
        nargs="?",
        help="a job, running or finished: say where the time of its steps goes, and why",
    )
    parser.add_argument(
        "--needs",
        metavar="PURPOSE",
        action="append",
        default=[],
        help=f"require what this needs, too, and exit with 1 where it is missing: {', '.join(PURPOSES)}, or a backend "
        "that another package provides; may be given several times",
    )
    parser.add_argument("--picture", metavar="FILE", help="with a job: write the same as a picture, in SVG")
    parser.add_argument("--backend", metavar="NAME", help="look at what this backend needs, and at nothing else")
    parser.add_argument(
        "--probe",
        action="store_true",
        help="with --backend slurm: submit a job of two nodes, which looks for what jobs need there",
    )


def run(arguments: Namespace) -> int:
    """Of what is installed: 1 where something is missing that every job needs, or a purpose that was named."""
    if arguments.job is not None:
        return _diagnose(arguments)
    if arguments.picture is not None:
        raise InvalidArgument("--picture", "--picture has no effect without a job; name one: estimator doctor JOB")
    if arguments.probe and arguments.backend is None:
        raise InvalidArgument("--probe", "--probe has no effect without --backend; add --backend slurm")
    known = purposes()
    for purpose in arguments.needs:
        if purpose not in known:
            raise InvalidArgument("--needs", f"--needs {purpose!r} is not known; {suggestion(purpose, known)}")
    found = list(_found(arguments))
    missing = {each.what for each in found if not each.is_there and _is_needed(each, arguments)}
    document = [{**each._asdict(), "is_needed": _is_needed(each, arguments)} for each in found]
    rows = [[_word(each, arguments), each.what, each.detail] for each in found]
    lines: list[str] = []
    for each, line in zip(found, answer.table(rows), strict=True):
        lines += [line] if each.is_there else [line, f"         to fix: {each.fix}"]
    answer.show(arguments, document, lines)
    return 1 if missing else 0


def _diagnose(arguments: Namespace) -> int:
    for option in ("needs", "backend", "probe"):
        if getattr(arguments, option):
            what = f"--{option} is about what is installed, and a job was named"
            raise InvalidArgument(f"--{option}", f"{what}; leave one of them out")
    picture = None if arguments.picture is None else answer.file_to_write("picture", arguments.picture)
    found = job_argument.find(arguments).diagnose()
    if picture is not None:
        picture.write_text(found.to_svg(), encoding="utf-8")
    answer.show(arguments, found.to_json(), str(found).splitlines())
    return 0


def _found(arguments: Namespace) -> Iterable[Finding]:
    if arguments.backend is None:
        return every_finding()
    backend = backends.load(arguments.backend)
    if not arguments.probe:
        return backend.check()
    if not isinstance(backend, Probes):
        what = f"--probe: the backend {arguments.backend} has no job that tries its machines"
        raise InvalidArgument("--probe", f"{what}; leave it out")
    return (*backend.check(), *backend.probe())


def _is_needed(finding: Finding, arguments: Namespace) -> bool:
    return finding.purpose in (None, arguments.backend) or finding.purpose in arguments.needs


def _word(finding: Finding, arguments: Namespace) -> str:
    if finding.is_there:
        return "ok"
    return "missing" if _is_needed(finding, arguments) else f"missing (only {finding.purpose} needs it)"
