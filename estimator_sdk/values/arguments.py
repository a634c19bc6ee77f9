"""Refuse an argument whose name is unknown, and say which one was probably meant."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any, TypeVar

from ..errors import InvalidArgument
from .naming import suggestion

C = TypeVar("C", bound=type)


def named_arguments(cls: C) -> C:
    """Make a dataclass raise InvalidArgument, not TypeError, for arguments that it does not have.

    The signature that an editor, `help()` and a type checker see stays the dataclass's own.
    """
    init = cls.__init__  # type: ignore[misc]
    parameters = [field for field in fields(cls) if field.init]
    names = [field.name for field in parameters]
    positional = sum(not field.kw_only for field in parameters)

    @functools.wraps(init)
    def checked(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the dataclass has the types
        title = type(self).__name__
        for name in kwargs:
            if name not in names:
                raise InvalidArgument(name, f"{title} has no argument {name!r}; {suggestion(name, names)}")
        if len(args) > positional:
            what = f"{title} takes {positional or 'no'} positional arguments, but got {len(args)}"
            raise InvalidArgument(title, f"{what}; pass them by name, such as {names[0]}=...")
        init(self, *args, **kwargs)

    cls.__init__ = checked  # type: ignore[misc]
    return cls
