"""The argument `restart_policy=`: after which failures of the script a job begins again, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from sys import float_info

from ..errors import InvalidArgument
from ..values.naming import shown, suggestion

MOST_RESTARTS = 1000
LONGEST_BACKOFF = 3600.0
"""Seconds."""
_EXAMPLE = '{"on": ["signal", "deadlock"], "max": 5, "within": 3600, "backoff": 10}'


@dataclass(frozen=True)
class RestartPolicy:
    """When a job begins again that its script, or the machine below it, has failed."""

    on: tuple[str, ...]
    """The kinds of verdicts that are tried again, of `restartable()`."""
    max: int = 3
    """So many restarts at most, from 1."""
    within: float | None = None
    """Seconds: only the restarts of that long count, so that a long job may fail now and then; None counts all."""
    backoff: float = 0.0
    """Seconds before the first restart; each further one that follows without a newer checkpoint waits twice as long,
    an hour at most."""

    @classmethod
    def from_document(cls, given: Mapping[str, object], where: str = "restart_policy") -> RestartPolicy:
        """What a dict says. Raises InvalidArgument for an unknown or missing key and a value that cannot be used."""
        known = [each.name for each in fields(cls)]
        for key in given:
            if key not in known:
                raise _refused(f"{where}[{shown(key)}]", f"is not known; {suggestion(key, known)}")
        return cls(
            on=_kinds(given.get("on"), f"{where}['on']"),
            max=_count(given.get("max", cls.max), f"{where}['max']"),
            within=_window(given.get("within"), f"{where}['within']") if given.get("within") is not None else None,
            backoff=_seconds(given.get("backoff", 0.0), f"{where}['backoff']", LONGEST_BACKOFF),
        )

    def to_document(self) -> dict[str, object]:
        """The way back from `from_document`."""
        return {name: value for name, value in asdict(self).items() if value}


def restartable() -> list[str]:
    """The kinds of verdicts after which another attempt can do better: the hosts stand, or the platform failed."""
    from estimator_container.failures.kind import Kind, Origin  # most jobs have no policy

    can = (kind for kind in Kind if kind.leaves_hosts or kind.origin is Origin.PLATFORM)
    return sorted(kind.value for kind in can if kind is not Kind.PREEMPTED)


def _kinds(given: object, where: str) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or not given:
        raise _refused(where, f"must be a list of kinds of failures, not {shown(given)}; write {_EXAMPLE}")
    known = restartable()
    for kind in given:
        if kind not in known:
            what = f"has {shown(kind)}, which is not a kind that can be retried"
            raise _refused(where, f"{what}; {suggestion(kind, known)}")
    return tuple(dict.fromkeys(given))


def _count(given: object, where: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_RESTARTS:
        raise _refused(where, f"must be a whole number from 1 to {MOST_RESTARTS}, not {shown(given)}")
    return given


def _seconds(given: object, where: str, most: float = float_info.max) -> float:
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 <= given <= most:
        limit = "" if most == float_info.max else f" of at most {most:g}"
        raise _refused(where, f"must be a number of seconds{limit}, not {shown(given)}")
    return float(given)


def _window(given: object, where: str) -> float:
    if (seconds := _seconds(given, where)) == 0.0:
        raise _refused(where, f"must be more than 0 seconds, not {shown(given)}: no restart would ever count")
    return seconds


def _refused(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(where, f"{where} {what}")
