"""`estimator pool check|adopt`: the machines of a pool, and jobs that were started from another machine."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgument
from .. import answer
from ..parser import Parser

if TYPE_CHECKING:
    from ...backends.ssh.survey import MachineReport

_GIB = 1 << 30


def add(parser: Parser) -> None:
    parser.add_argument("action", choices=["check", "adopt"])
    parser.add_argument(
        "hosts", help="the machines, such as a:4,user@b:4, or the name of a hostfile; to adopt a job, its first machine"
    )
    parser.add_argument("job", nargs="?", help="the name of the job to adopt, so that all commands know it here")
    parser.add_argument("--image", help="for check: an image that jobs are to run in; machines that lack it pull it")


def run(arguments: Namespace) -> int:
    """1 where a machine misses something."""
    if arguments.action == "adopt":
        if arguments.image:
            raise InvalidArgument("image", "--image is for check, which looks at machines; leave it out")
        return _adopt(arguments)
    if arguments.job is not None:
        raise InvalidArgument("job", "a job's name is for adopt, and check looks at machines; leave it out")
    return _check(arguments)


def _check(arguments: Namespace) -> int:
    from ...backends.ssh import pool
    from ...backends.ssh.survey import survey

    found = survey(pool.from_either(arguments.hosts), arguments.image)
    document = [{"host": str(each.host), **each.facts, "missing": list(each.missing)} for each in found]
    head = ["MACHINE", "PYTHON", "MPI", "CLOCK", "CPUS", "MEMORY", "GPUS", "DISK", "PORTS", "ADDRESS"]
    lines = []
    rows = [head, *map(_row, found)]
    for number, line in enumerate(answer.table(rows)):
        lines.append(line)
        if number:
            lines += _about(found[number - 1])
    answer.show(arguments, document, lines)
    return 1 if any(each.missing for each in found) else 0


def _row(report: MachineReport) -> list[str]:
    facts = report.facts
    if not facts:
        return [str(report.host), *["-"] * 9]
    address = f"{facts['address']} ({facts['interface'] or '?'})"
    sizes = [f"{facts[name] / _GIB:.0f} GiB" for name in ("memory", "disk")]
    clock, counts = f"{facts['clock']:+.1f} s", [str(facts["cpus"]), str(facts["gpus"])]
    return [
        str(report.host),
        facts["python"],
        facts["mpi"] or "-",
        clock,
        counts[0],
        sizes[0],
        counts[1],
        sizes[1],
        str(facts["ports"]),
        address,
    ]


def _about(report: MachineReport) -> Iterator[str]:
    yield from (f"         missing: {what}" for what in report.missing)


def _adopt(arguments: Namespace) -> int:
    from ...backends.ssh import adoption, pool

    if arguments.job is None:
        raise InvalidArgument("job", "adopt needs the name of the job that is to be known here")
    (host, *others) = pool.from_argument(arguments.hosts)
    if others:
        raise InvalidArgument("hosts", "adopt needs the first machine of the job alone, which has its supervisor")
    job = adoption.adopt(host, arguments.job)
    answer.show(arguments, {"job": job.name, "host": str(host)}, [f"{job.name} is known here: see `estimator logs`"])
    return 0
