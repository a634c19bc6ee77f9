"""How events are read: each fact is of its type, or there is no event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Callable, Union, cast, get_args

from .agent_events import ChannelEvent, CheckpointEvent, OutputEvent
from .event import Event
from .events import HostEvent, JobEvent, RankEvent, SaidEvent

QuietEvent = Union[HostEvent, RankEvent, ChannelEvent, CheckpointEvent, OutputEvent, JobEvent]
AnyEvent = Union[QuietEvent, SaidEvent]

Reader = Callable[[Any], object]
"""Takes a fact as JSON has it, and returns it as the event has it. Raises TypeError, ValueError or OverflowError."""
KINDS: dict[str, type[Event]] = {kind.name: kind for kind in get_args(AnyEvent)}
"""All of them, by their names."""


def decode(data: bytes) -> AnyEvent | None:
    """The event in a frame; None for one that only another version knows, and for what is none.

    Facts that it does not know are another version's.
    """
    try:
        facts = json.loads(data)
        return of_facts(facts["event"], facts)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


def of_facts(name: str, facts: Mapping[str, Any]) -> AnyEvent:
    """The event of that name. Raises LookupError, TypeError, ValueError or OverflowError where it is none."""
    kind = KINDS[name]
    read = {fact: _READERS[given](facts[fact]) for fact, given in kind.types.items() if fact in facts}
    return cast("AnyEvent", kind(**read))


def _exactly(kind: type) -> Reader:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


def _whole(value: object) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise TypeError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _or_none(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _each(read: Reader) -> Reader:
    def read_all(values: object) -> tuple[object, ...]:
        if type(values) is not list:
            raise TypeError
        return tuple(read(value) for value in values)

    return read_all


def _by_rank(values: object) -> dict[int, object]:
    if type(values) is not dict:
        raise TypeError
    return {int(rank): _READERS["Sequence[str]"](value) for rank, value in values.items()}


_READERS: dict[str, Reader] = {
    "str": _exactly(str),
    "str | None": _or_none(_exactly(str)),
    "bool": _exactly(bool),
    "int": _whole,
    "int | None": _or_none(_whole),
    "float": _number,
    "float | None": _or_none(_number),
    "Sequence[str]": _each(_exactly(str)),
    "Sequence[str] | None": _or_none(_each(_exactly(str))),
    "Sequence[int]": _each(_whole),
    "Sequence[float]": _each(_number),
    "Sequence[int | None]": _each(_or_none(_whole)),
    "Sequence[float | None]": _each(_or_none(_number)),
    "Sequence[Sequence[int]]": _each(_each(_whole)),
    "Mapping[int, Sequence[str]]": _by_rank,
    "Mapping[str, object] | None": _or_none(_exactly(dict)),
}
