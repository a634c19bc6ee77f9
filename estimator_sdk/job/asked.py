"""Whether what is asked of a job makes sense: each raises InvalidArgument, which names the argument."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArgument
from ..values.naming import shown, suggestion

if TYPE_CHECKING:
    from ..telemetry.machines import Question


def check_whole(name: str, value: object, least: int) -> None:
    """Anything but a whole number from `least` on."""
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)  # as an integer of NumPy is
    if not is_whole or operator.index(value) < least:  # type: ignore[arg-type]
        raise InvalidArgument(name, f"{name} must be a whole number from {least} on, not {shown(value)}")


def check_measured(question: Question, hosts: Collection[str]) -> None:
    """What the hosts of a job, of these names, cannot have measured."""
    from estimator_container.telemetry.metric_table import KINDS

    from ..values.conform import conform

    for name, known in (("metrics", KINDS), ("hosts", hosts)):
        for each in _several(name, getattr(question, name)):
            if each not in known:
                raise InvalidArgument(name, f"{name} has {shown(each)}; {suggestion(each, known)}")
    for rank in _several("ranks", question.ranks):
        if rank is not None:  # as of a script without a world
            check_whole("ranks", rank, 0)
    for name in ("start", "end", "resolution"):
        conform(float | None, getattr(question, name), name)
    if question.resolution is not None and not 0 < question.resolution < float("inf"):
        what = f"resolution is {shown(question.resolution)}, but it is the seconds of a point"
        raise InvalidArgument("resolution", f"{what}; give more than 0, or leave it out")
    check_whole("points", question.points, 1)


def folder(path: object) -> Path:
    """The folder at a path, which is made if it is not there."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or "://" in os.fspath(path):
        raise InvalidArgument("path", f"path is {shown(path)}; give a folder of this machine, such as '.'")
    target = Path(path)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument("path", f"the folder {str(target)!r} cannot be made: {error.strerror}") from None
    return target


def _several(name: str, given: object) -> Collection[object]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InvalidArgument(name, f"{name} is {shown(given)}; give several as a list, such as [{given!r}]")
    return given
