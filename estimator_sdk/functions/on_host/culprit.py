"""Which variable it is that keeps a function, its arguments or its return value from being pickled."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_DEEPEST = 20  # variables inside variables; whatever is deeper is named by what holds it

_SPARK = "pyspark"
"""The package whose objects stay with the driver as a whole: what is inside them is nobody's variable."""


class Culprit(NamedTuple):
    """The innermost thing that cannot be pickled."""

    name: str
    """How code reaches it: `lock`, `config['lock']`, `model.session`."""
    owner: str
    """The function that the variable belongs to; "" if it belongs to none."""
    value: object
    error: Exception
    """What pickling it alone raises."""

    def sentence(self) -> str:
        """What it is, and why it does not travel."""
        where = f" of {self.owner}()" if self.owner else ""
        kind = type(self.value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        return f"the variable {self.name!r}{where} holds a {name}: {self.error}"


def find(name: str, value: object, owner: str = "") -> Culprit | None:
    """What of `value` cannot be pickled; None if all of it can be."""
    return _find(name, value, owner, set(), 0)


def _find(name: str, value: object, owner: str, seen: set[int], depth: int) -> Culprit | None:
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:  # a class's own way of pickling may raise anything
        seen.add(id(value))
        inside = _parts(name, value, owner) if depth < _DEEPEST else iter(())
        for part, its_owner, each in inside:
            found = None if id(each) in seen else _find(part, each, its_owner, seen, depth + 1)
            if found is not None:
                return found
        return Culprit(name, owner, value, error)
    return None


def _parts(name: str, value: object, owner: str) -> Iterator[tuple[str, str, object]]:
    """What is pickled along with a value: how it is reached, whose variable it is, and it itself."""
    if type(value).__module__.partition(".")[0] == _SPARK:
        return
    if isinstance(value, types.FunctionType):
        yield from ((each, value.__name__, held) for each, held in _variables(value))
    elif isinstance(value, types.MethodType):
        yield "self", value.__name__, value.__self__
    elif isinstance(value, functools.partial):
        yield name, owner, value.func
        yield from ((f"{name}.args[{index}]", owner, each) for index, each in enumerate(value.args))
        yield from ((key, name, each) for key, each in value.keywords.items())
    elif isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", owner, each) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{index}]", owner, each) for index, each in enumerate(value))
    else:
        yield from ((f"{name}.{key}", owner, each) for key, each in dict(getattr(value, "__dict__", {})).items())


def _variables(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """The variables around a function that it uses, and the defaults of its arguments."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in sorted(_globals_of(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is not parameter.empty:
            yield parameter.name, parameter.default


def _globals_of(code: types.CodeType) -> set[str]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _globals_of(constant)
    return names
