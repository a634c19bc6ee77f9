"""Read-only forms of JSON values, so that data which is meant not to change cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class FrozenMapping(Mapping[str, V], Generic[V]):
    """A mapping that cannot be changed; equal to a dict with the same items, hashable if its values are."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


EMPTY: FrozenMapping[object] = FrozenMapping({})


def freeze(value: object) -> object:
    """Dicts as `FrozenMapping`, lists as tuples, all the way down; anything else as it is."""
    if isinstance(value, Mapping):
        return FrozenMapping({key: freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: object) -> object:
    """The opposite of `freeze`: plain dicts and lists, owned by the caller."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value
