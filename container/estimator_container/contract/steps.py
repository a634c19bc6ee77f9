"""The steps of a job: lines that every rank runs, each after all ranks have ended the one before."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .entry_point import PYTHONS, CommandLine
from .hyperparameters import can_be_passed

# Words that mean the same to a shell and to `shlex`: no variable, pattern, redirection, list of commands or comment.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./ '\"-]+")
MAX_NAME_LENGTH = 64
FORM = 'a list such as [{"name": "train", "run": "python train.py"}]'
"""Of the JSON value."""


class Step(NamedTuple):
    """One line and the name that it goes by."""

    name: str
    """What people call it; a step without a name of its own goes by its number, from 1."""
    line: str
    """What `/bin/sh` runs on each rank, in the code folder."""

    def command(self, python: str, in_world: bool) -> list[str]:
        """The command of a rank. A shell ends at the first command of the line that fails.

        A line that is nothing but Python and its arguments needs no shell, and is run as an entry point is:
        `script_runner` ends a rank of a world at its exception, where MPI_Finalize would wait for the others.

        >>> Step("train", "python train.py --lr 0.1").command("/usr/bin/python3", False)
        ['/usr/bin/python3', '-u', '-m', 'estimator_container.ranks.lone_script', 'train.py', '--lr', '0.1']
        >>> Step("count", "ls | wc -l").command("/usr/bin/python3", False)
        ['/bin/sh', '-e', '-c', 'ls | wc -l']
        """
        words = self._plain_words()
        if words and words[0] in PYTHONS:
            return CommandLine(tuple(words)).command(python, in_world)
        return ["/bin/sh", "-e", "-c", self.line]

    def _plain_words(self) -> list[str]:
        """The words of a line that needs no shell to tell them; none for any other."""
        if _PLAIN.fullmatch(self.line) is None:
            return []
        try:
            words = shlex.split(self.line)
        except ValueError:
            return []
        return [words[0], *words[2:]] if words[1:2] == ["-u"] else words  # which it is run with anyway


def to_value(steps: Sequence[Step]) -> list[dict[str, str]]:
    """The steps as JSON has them."""
    return [{"name": step.name, "run": step.line} for step in steps]


def from_value(given: Sequence[Mapping[str, str]]) -> tuple[Step, ...]:
    """The way back from `to_value`."""
    return tuple(Step(each["name"], each["run"]) for each in given)


def are_steps(given: object) -> bool:
    """Whether `to_value` could have made it."""
    return isinstance(given, list) and bool(given) and all(map(_is_step, given))


def _is_step(given: object) -> bool:
    if not isinstance(given, dict) or set(given) != {"name", "run"}:
        return False
    return all(isinstance(value, str) and value and can_be_passed(value) for value in given.values())
