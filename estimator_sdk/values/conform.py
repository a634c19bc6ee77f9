"""Hold a value against a type annotation, and say in a sentence where it does not fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import EnumMeta
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from ..errors import InvalidArgument
from .frozen import FrozenMapping
from .naming import nearest, shown

if sys.version_info >= (3, 10):
    from types import UnionType
else:
    UnionType = Union  # `int | None` is none yet

_UNIONS: tuple[object, ...] = (Union, UnionType)
NoneType = type(None)
_HINTS: dict[type, Mapping[str, object]] = {}
_NAMES = {str: "a str", int: "an int", float: "a number", bool: "True or False"}


def conform(hint: object, value: object, where: str) -> object:
    """`value` in its read-only form, if it is what the annotation `hint` says.

    Lists become tuples, dicts become read-only, paths become strings; a dict becomes the class that `hint`
    names if that has a `from_document`. A bool is no int. Raises InvalidArgument, which names `where`, for
    anything else.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return _conform_union(hint, value, where)
    if origin is Literal:
        return value if isinstance(value, str) and value in arguments else _refuse(hint, value, where)
    if origin in (tuple, Sequence):
        return _conform_items(arguments[0], value, where)
    if origin is Mapping:
        return _conform_mapping(arguments[1], value, where)
    if isinstance(hint, EnumMeta):
        return _conform_enum(hint, value, where)
    if origin is os.PathLike:
        return os.fspath(value) if isinstance(value, os.PathLike) else _refuse(hint, value, where)
    return _conform_class(hint, value, where)


def field_hints(cls: type) -> Mapping[str, object]:
    """The annotation of each field of a dataclass, evaluated once for each class."""
    if cls not in _HINTS:
        hints = get_type_hints(cls) if sys.version_info >= (3, 10) else evaluated(cls)
        _HINTS[cls] = {field.name: hints[field.name] for field in fields(cls)}
    return _HINTS[cls]


def evaluated(cls: type) -> dict[str, Any]:
    """As `get_type_hints`, on Python 3.9, which some hosts have: `int | None` is read as `Union[int, None]`."""
    import ast

    class Unions(ast.NodeTransformer):
        def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
            sides = ast.Tuple([self.visit(node.left), self.visit(node.right)], ast.Load())
            return ast.Subscript(ast.Name("Union", ast.Load()), sides, ast.Load())

    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = {**vars(sys.modules[base.__module__]), "Union": Union}
        for name, text in vars(base).get("__annotations__", {}).items():
            tree = ast.fix_missing_locations(Unions().visit(ast.parse(text, mode="eval")))
            hints[name] = eval(compile(tree, text, "eval"), names)
    return hints


def without_none(hint: object) -> object:
    """The annotation of a value that is there: `int | None` becomes `int`."""
    rest = tuple(choice for choice in get_args(hint) if choice is not NoneType)
    return rest[0] if NoneType in get_args(hint) and len(rest) == 1 else hint


def _conform_union(hint: object, value: object, where: str) -> object:
    choices = [choice for choice in get_args(hint) if choice is not NoneType]
    if value is None and len(choices) < len(get_args(hint)):
        return None
    if len(choices) == 1:
        return conform(choices[0], value, where)
    for choice in choices:
        try:
            return conform(choice, value, where)
        except InvalidArgument as error:
            if error.argument != where:  # something inside it is wrong, so this choice was meant
                raise
    return _refuse(hint, value, where)


def _conform_enum(hint: EnumMeta, value: object, where: str) -> object:
    try:
        return hint(value)
    except ValueError:
        _refuse(hint, value, where)


def _conform_items(hint: object, value: object, where: str) -> object:
    if not isinstance(value, (list, tuple)):
        _refuse(Sequence, value, where)
    return tuple(conform(hint, item, f"{where}[{index}]") for index, item in enumerate(value))


def _conform_mapping(hint: object, value: object, where: str) -> object:
    if not isinstance(value, Mapping):
        _refuse(Mapping, value, where)
    for key in value:
        if not isinstance(key, str):
            got = f"{shown(key)} ({type(key).__name__})"
            raise InvalidArgument(where, f"{where} has the key {got}; keys must be strings")
    return FrozenMapping({key: conform(hint, item, f"{where}[{key!r}]") for key, item in value.items()})


def _conform_class(hint: object, value: object, where: str) -> object:
    if hint is object:
        return value
    assert isinstance(hint, type), f"{hint!r} is an annotation that conform() does not know"
    decode = getattr(hint, "from_document", None)
    if decode is not None and isinstance(value, Mapping):
        return decode(value, where)
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        _refuse(hint, value, where)
    if hint is float:
        _check_size(value, where)
    return value


def _check_size(number: object, where: str) -> None:
    """Raises InvalidArgument for an int that no float can hold, and for NaN, which is within no limits."""
    try:
        held = float(number)  # type: ignore[arg-type]
    except OverflowError:
        raise InvalidArgument(
            where, f"{where} is {shown(number)}, which is larger than any number can be; lower it"
        ) from None
    if held != held:  # as NaN alone
        _refuse(float, number, where)


def _refuse(hint: object, value: object, where: str) -> NoReturn:
    got = "None" if value is None else f"{_shown(value, where)} ({type(value).__name__})"
    near = nearest(value, get_args(hint)) if get_origin(hint) is Literal and isinstance(value, str) else None
    end = f"; did you mean {near!r}?" if near else ""
    raise InvalidArgument(where, f"{where} must be {_describe(hint)}, not {got}{end}")


def _shown(value: object, where: str) -> str:
    """A value as an error quotes it; one that is of a secret's name is not shown."""
    from estimator_container.logs.masking import HIDDEN, is_secret

    return HIDDEN if is_secret(where.rpartition("[")[2].strip("']"), value) else shown(value)


def _describe(hint: object) -> str:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return _either([repr(choice) for choice in get_args(hint)])
    if origin in _UNIONS:
        return _either([_describe(choice) for choice in get_args(hint) if choice is not NoneType])
    if origin in (tuple, Sequence):
        return "a list"
    if origin is Mapping:
        return "a dict"
    if hasattr(origin, "from_document"):
        return f"a dict or {getattr(origin, '__name__', origin)}"
    if origin is os.PathLike:
        return "a path"
    if isinstance(origin, EnumMeta):
        return f"a {origin.__name__}"
    return _NAMES.get(origin, str(origin)) if isinstance(origin, type) else str(origin)


def _either(choices: list[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
