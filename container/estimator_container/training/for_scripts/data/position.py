"""Where a script is in its data: what a checkpoint keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .errors import DataError
from .order import Division, Interval

_VERSION = 1


@dataclass(frozen=True)
class Position:
    """After how many steps of which epoch the script is, and what each of these was."""

    epoch: int
    step: int
    """How many the script has made since `left` was what nobody had had."""
    left: tuple[Interval, ...]
    world_size: int
    batch_size: int

    @property
    def division(self) -> Division:
        """Who gets what of what was left."""
        return Division(self.left, self.world_size, self.batch_size)

    def divided_anew(self, samples: int, world_size: int, batch_size: int) -> Position:
        """The same position, for a world that may be another; at the end of an epoch that is the next one's begin."""
        if self.step >= self.division.steps:
            return Position(self.epoch + 1, 0, ((0, samples),), world_size, batch_size)
        if (world_size, batch_size) == (self.world_size, self.batch_size):
            return self
        return Position(self.epoch, 0, self.division.left_after(self.step), world_size, batch_size)

    def to_state(self, data: Mapping[str, object]) -> dict[str, Any]:
        """As a dict that JSON can hold; `data` says of which data, in which order."""
        return {"version": _VERSION, **asdict(self), "left": [list(each) for each in self.left], "data": dict(data)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], data: Mapping[str, object]) -> Position:
        """The way back. Raises DataError for a position in other data, or in another order of them."""
        try:
            if state["version"] != _VERSION:
                raise ValueError(f"its version is {state['version']!r}, not {_VERSION}")
            found = cls(
                int(state["epoch"]),
                int(state["step"]),
                tuple((int(start), int(end)) for start, end in state["left"]),
                int(state["world_size"]),
                int(state["batch_size"]),
            )
            before = dict(state["data"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is no position in a data set ({error}): give what state_dict() returned") from None
        for name, now in data.items():
            if before.get(name) != now:
                raise DataError(
                    f"the position was kept with {name} {before.get(name)!r}, but it is {now!r} now, so it means other "
                    "samples: read the same data in the same order, or begin without the position"
                )
        return found
