"""What every event is: facts under a name, and how they are written.

In a host's log an event is a frame of JSON. `event` is its name, which is that of its class (`rank_started` of
`RankStarted`), and all else are its facts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Callable, ClassVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Tells type checkers, and nobody else, that subclasses have fields."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Event:
    """Something that happened: a frozen record of the fields that its class annotates, in the order they are written.

    Its subclasses are what frozen dataclasses would be; making that many of those would slow down the start of a host.
    """

    name: ClassVar[str]
    types: ClassVar[Mapping[str, str]]
    """The facts, each with its annotation."""
    defaults: ClassVar[Mapping[str, object]]
    """Those that may be absent, and what is assumed then."""
    recorded_for: ClassVar[str] = ""
    """Who looks it up in the log; empty for what users are told while the job runs."""
    is_said: ClassVar[bool] = False
    """Whether the log has it in words too, for those who get its lines and no events, as from CloudWatch."""

    def __init_subclass__(cls) -> None:
        cls.name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)[1:]
        cls.types = vars(cls).get("__annotations__", {})
        cls.defaults = {fact: vars(cls)[fact] for fact in cls.types if fact in vars(cls)}

    def __init__(self, *given: object, **named: object) -> None:
        facts = {**self.defaults, **dict(zip(self.types, given)), **named}
        if facts.keys() != self.types.keys():
            raise TypeError(f"{type(self).__name__} has the facts {', '.join(self.types)}, not {', '.join(facts)}")
        self.__dict__.update((fact, facts[fact]) for fact in self.types)

    def __setattr__(self, fact: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.name, *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{fact}={value!r}' for fact, value in vars(self).items())})"

    def to_json(self) -> str:
        """As it is written, without the facts that are absent."""
        facts = {fact: value for fact, value in vars(self).items() if value is not None or fact not in self.defaults}
        return json.dumps({"event": self.name, **facts})
