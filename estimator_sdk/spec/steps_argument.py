"""The argument `steps=`: what it may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estimator_container.contract.hyperparameters import can_be_passed
from estimator_container.contract.steps import MAX_NAME_LENGTH, Step

from ..errors import InvalidArgument
from ..values.naming import suggestion

_KEYS = ("name", "run")
_EXAMPLE = '["python prepare.py", {"name": "train", "run": "python train.py"}]'


def parse(steps: Sequence[str | Mapping[str, str]] | None) -> tuple[Step, ...]:
    """What `steps=` says; none for no steps. A step without a name goes by its number, from 1.

    Raises InvalidArgument for an empty list, an unknown key, an empty line, and a name that is given twice.

    >>> parse(["python prepare.py", {"name": "train", "run": "python train.py"}])
    (Step(name='1', line='python prepare.py'), Step(name='train', line='python train.py'))
    """
    if steps is None:
        return ()
    if not steps:
        raise InvalidArgument("steps", f"steps is empty, so there is nothing to run; write {_EXAMPLE}, or entry_point=")
    parsed: list[Step] = []
    for index, given in enumerate(steps):
        step = _parse_one(given, index)
        if any(step.name == other.name for other in parsed):
            raise _refused(index, f"has the same name {step.name!r} as an earlier step; rename one of them", "name")
        parsed.append(step)
    return tuple(parsed)


def beginning_with(steps: Sequence[Step], name: str) -> tuple[Step, ...]:
    """The steps from the one of that name on. Raises InvalidArgument if there is none."""
    for index, step in enumerate(steps):
        if step.name == name:
            return tuple(steps[index:])
    what = f"from_step {name!r} is not a step of this job"
    raise InvalidArgument("from_step", f"{what}; {suggestion(name, [step.name for step in steps])}")


def _parse_one(given: str | Mapping[str, str], index: int) -> Step:
    if isinstance(given, str):
        given = {"run": given}
    for key in given:
        if key not in _KEYS:
            raise _refused(index, f"has the unknown key {key!r}; {suggestion(key, _KEYS)}", key)
    if "run" not in given:
        raise _refused(index, "has no `run`, the line to run; add one")
    line, name = given["run"], given.get("name", str(index + 1))
    if not line.strip() or not can_be_passed(line):
        what = f"has the line {line!r}, which is empty or holds a NUL or an unpaired surrogate"
        raise _refused(index, f"{what}; write a command", "run")
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        what = f"has the name {name!r}, but a name has 1 to {MAX_NAME_LENGTH} characters on one line"
        raise _refused(index, f"{what}; write a shorter one", "name")
    return Step(name, line)


def _refused(index: int, what: str, key: str | None = None) -> InvalidArgument:
    where = f"steps[{index}]"
    return InvalidArgument(where if key is None else f"{where}[{key!r}]", f"{where} {what}")
