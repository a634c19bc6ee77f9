"""What the machines of a pool have, asked of all at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import BackendError, InvalidArgument
from .launch import CONNECTED_AT_ONCE, on_all
from .pool import PoolHost
from .session.connection import Session

CLOCK_SECONDS = 1.0
"""By which the clock of a machine may differ before that is said: lines of a log are merged by it."""
DISK_BYTES = 1 << 30
"""Free, below which that is said."""
FREE_PORTS = 1000
"""For connections of programs, below which that is said: ranks have some to each other."""


class MachineReport(NamedTuple):
    """What one machine has."""

    host: PoolHost
    facts: dict[str, Any]
    """As `on_host.facts` tells them, with `clock`: by how many seconds it is ahead; empty if it cannot be reached."""
    missing: tuple[str, ...]
    """What jobs would miss there, each in words."""


def survey(machines: Sequence[PoolHost], image: str | None = None) -> list[MachineReport]:
    """A report on each machine, in their order; with an image, on whether its hosts run in that."""
    opened = on_all(Session, machines, CONNECTED_AT_ONCE)
    ready = [each for each in opened if isinstance(each, Session)]
    try:
        told = {each.host: answer for each, answer in zip(ready, on_all(_facts, ready), strict=True)}
        known = {host: answer for host, answer in told.items() if isinstance(answer, dict)}
        asked = [each for each in ready if each.host in known]
        answers = [*zip(asked, on_all(lambda each: _lacks(each, known, image), asked), strict=True)]
    finally:
        on_all(Session.close, ready)
    lacks = {each.host: [str(found)] if isinstance(found, BackendError) else found for each, found in answers}
    given = {**dict(zip(machines, opened, strict=True)), **told}
    errors = {host: error for host, error in given.items() if isinstance(error, BackendError)}
    return [_report(host, known.get(host), lacks.get(host, []), errors.get(host)) for host in machines]


def _lacks(session: Session, known: dict[PoolHost, dict[str, Any]], image: str | None) -> list[str]:
    """What only the machine itself can say."""
    facts = known[session.host]
    own = _without_mpi(facts) if image is None else _without_image(session, image, with_gpus=facts["gpus"] > 0)
    return [*own, *_unreached(session, known)]


def _without_mpi(facts: dict[str, Any]) -> list[str]:
    return [] if facts["mpi"] else ["no mpirun on PATH, which MPI worlds need"]


def _without_image(session: Session, image: str, with_gpus: bool) -> list[str]:
    from .session import images

    try:
        inside = images.look(session, image, images.run_words(with_gpus))
    except (BackendError, InvalidArgument) as error:
        return [str(error).removeprefix(f"{session.host}: ")]
    return [] if inside.mpirun else [f"MPI worlds do not run in {image}: {inside.why_no_mpirun}"]


def _facts(session: Session) -> dict[str, Any]:
    asked = time.time()
    facts = session.ask("facts")
    # The machine has looked at its clock somewhere between the two.
    facts["clock"] = facts["time"] - min(max(facts["time"], asked), time.time())
    return facts


def _unreached(session: Session, known: dict[PoolHost, dict[str, Any]]) -> list[str]:
    """What is said of the other machines that this one cannot connect to."""
    others = [host for host in known if host != session.host]
    places = [[known[host]["address"], known[host]["door"]] for host in others]
    refused = session.ask("reach", places=places)["refused"]
    at = {host: place[0] for host, place in zip(others, places, strict=True)}
    return [
        f"it cannot reach {host} at {at[host]}: {why}; let no firewall be between them"
        for host, why in zip(others, refused, strict=True)
        if why
    ]


def _report(
    host: PoolHost, facts: dict[str, Any] | None, lacks: list[str], error: BackendError | None
) -> MachineReport:
    if facts is None:
        return MachineReport(host, {}, (str(error or f"{host} has not answered"),))
    told = {name: fact for name, fact in facts.items() if name != "door"}
    return MachineReport(host, told, (*lacks, *_missing(facts)))


def _missing(facts: dict[str, Any]) -> list[str]:
    lacks = {
        f"its clock differs by {facts['clock']:+.1f} s": abs(facts["clock"]) > CLOCK_SECONDS,
        f"only {facts['ports']} ports are free for connections": facts["ports"] < FREE_PORTS,
        "less than 1 GiB of disk is free": facts["disk"] < DISK_BYTES,
        "other machines cannot reach it at a loopback address": facts["address"].startswith("127."),
    }
    return [what for what, is_so in lacks.items() if is_so]
