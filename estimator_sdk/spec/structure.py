"""Typed structures that are JSON documents of the SageMaker API, and back, without loss.

A field `volume_kms_key_id` is the member `VolumeKmsKeyId`. A member that has no field is kept as it is in
`other`, at the place where it stood, so a document with members that are newer than this module survives the
round trip.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from ..errors import InvalidArgument
from ..values.conform import conform, field_hints, without_none
from ..values.frozen import EMPTY, freeze, thaw
from ..values.naming import nearest, shown

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Says to a type checker alone that `structure` makes dataclasses; `typing` has it from 3.11 on."""
        return lambda decorator: decorator


_IRREGULAR = {
    "hyperparameters": "HyperParameters",
    "volume_size_in_gb": "VolumeSizeInGB",
    "enable_sagemaker_metrics_time_series": "EnableSageMakerMetricsTimeSeries",
}

_LONG = 1 << 63  # the API's type Long

C = TypeVar("C")
S = TypeVar("S", bound="Structure")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def structure(cls: type[C]) -> type[C]:
    """A class of fields that are given by their names, and do not change."""
    if sys.version_info >= (3, 10):
        return dataclass(frozen=True, kw_only=True, repr=False)(cls)
    for name in vars(cls).get("__annotations__", {}):  # one without a default may not come after one that has it
        if name not in vars(cls):
            setattr(cls, name, field(default_factory=_not_given))
    return dataclass(frozen=True, repr=False)(cls)


def _not_given() -> NoReturn:
    raise TypeError("a field without a default is not given")


@structure
class Structure:
    """The base of all structures: snake-case fields for Pascal-case members, None for an absent member."""

    is_document: ClassVar[bool] = False
    """Whether paths of members start here."""
    other: Mapping[str, object] = EMPTY
    """Members that have no field, under their own names, read-only."""

    def __post_init__(self) -> None:
        """Raises InvalidArgument for a value that is not what its field says."""
        cls = type(self)
        where = "" if cls.is_document else cls.__name__
        for name, hint in _hints(cls).items():
            path = _join(where, member_name(name))
            value = conform(hint, getattr(self, name), path)
            _check_integer(value, path)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "other", _checked_other(self, where))

    def __repr__(self) -> str:
        return self._representation({})

    def _representation(self, instead: Mapping[str, object]) -> str:
        """The constructor's call; `instead` has what stands in the place of some values."""
        given = {name: instead.get(name, getattr(self, name)) for name in _hints(type(self))}
        shown = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        shown += [f"other={self.other!r}"] if self.other else []
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def from_document(cls: type[S], document: Mapping[str, object], where: str = "") -> S:
        """The structure that `document` describes; `where` is the document's path in errors.

        Raises InvalidArgument, which names the member's path, for a value of the wrong type or a missing
        member.
        """
        conform(Mapping[str, object], document, where or "the document")
        given: dict[str, Any] = {}
        for each in fields(cls):
            member = member_name(each.name)
            if each.name == "other":
                continue
            if member in document:
                hint = without_none(_hints(cls)[each.name])
                given[each.name] = conform(hint, document[member], _join(where, member))
            elif each.default is MISSING:
                raise _missing(_join(where, member), member, document.keys() - _members(cls))
        other = {member: value for member, value in document.items() if member not in _members(cls)}
        return cls(**given, other=other)

    def to_document(self) -> dict[str, Any]:
        """The document, as new dicts and lists that the caller owns."""
        given = {member_name(name): getattr(self, name) for name in _hints(type(self))}
        present = {member: _plain(value) for member, value in given.items() if value is not None}
        return {**present, **{member: thaw(value) for member, value in self.other.items()}}


def member_name(field: str) -> str:
    """The member that a field stands for.

    >>> member_name("s3_uri"), member_name("volume_size_in_gb")
    ('S3Uri', 'VolumeSizeInGB')
    """
    return _IRREGULAR.get(field) or "".join(word.capitalize() for word in field.split("_"))


def _missing(path: str, member: str, unknown: Iterable[str]) -> InvalidArgument:
    near = nearest(member, unknown)
    return InvalidArgument(path, f"{path} is missing; {f'rename {near!r} if you meant it' if near else 'add it'}")


def _check_integer(value: object, path: str) -> None:
    """Raises InvalidArgument for a number that is none of the API's, whose integers have at most 64 bits."""
    if isinstance(value, int) and not -_LONG <= value < _LONG:
        raise InvalidArgument(path, f"{path} is {shown(value)}, but an integer here has at most 64 bits; fix it")


def _plain(value: object) -> object:
    if isinstance(value, Structure):
        return value.to_document()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return thaw(value)


def _checked_other(structure: Structure, where: str) -> object:
    other = conform(Mapping[str, object], structure.other, _join(where, "other"))
    assert isinstance(other, Mapping)
    for name in _hints(type(structure)):
        member = member_name(name)
        if member in other:
            path = _join(where, member)
            raise InvalidArgument(path, f"{path} is in `other`, but it has a field of its own: use {name}=")
    for member, value in other.items():
        _check_json(thaw(value), _join(where, member))
    return freeze(other)


def _check_json(value: object, path: str) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(path, f"{path} holds a value that JSON cannot represent: {error}; leave it out") from None


def _join(where: str, member: str) -> str:
    return f"{where}.{member}" if where else member


def _hints(cls: type) -> dict[str, object]:
    return {name: hint for name, hint in field_hints(cls).items() if name != "other"}


def _members(cls: type) -> set[str]:
    return set(map(member_name, _hints(cls)))
