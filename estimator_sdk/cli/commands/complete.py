"""What may stand at a place of a command line: a shell asks `estimator complete -- INDEX WORD…`.

`WORD…` are those after the program's name, and INDEX counts the one to complete from 1, as bash and zsh do. Names of
jobs are those of the folders of this machine: no record is read and no service is asked.
"""

from __future__ import annotations

import os
from argparse import Action, Namespace
from collections.abc import Callable, Iterable, Sequence

from ...errors import InvalidArgument
from ...values.home import jobs_folder
from ...values.job_name import is_name
from .. import answer
from .. import command_table as commands
from ..parser import Parser


def add(parser: Parser) -> None:
    parser.take_command()


def run(arguments: Namespace) -> int:
    index, *words = arguments.command or ("0",)
    found = candidates(int(index) if index.isdigit() else 0, words)
    answer.write("".join(f"{word}\n" for word in found))
    return 0


def candidates(index: int, words: Sequence[str]) -> list[str]:
    """The words that may stand at `index`, counted from 1, and begin as the word that is there does.

    >>> candidates(1, ["ch"]), candidates(2, ["checkpoints", ""])
    (['checkpoints'], ['ls', 'verify', 'pull'])
    """
    before, start = list(words[: index - 1]), words[index - 1] if 0 < index <= len(words) else ""
    return [word for word in _possible(before, start) if word.startswith(start)]


def _possible(before: list[str], start: str) -> Iterable[str]:
    if not before:
        return commands.COMMANDS
    if before[0] not in commands.COMMANDS or "--" in before:
        return ()
    name, command, words = commands.find(before)
    parser = Parser(name, "")
    command.add(parser)
    by_name = {name: action for action in parser._actions for name in action.option_strings}
    option = by_name.get(before[-1])
    if option is not None and option.nargs != 0:
        return _values(option)
    if start.startswith("-"):
        return parser.options()
    positionals = [action for action in parser._actions if not action.option_strings]
    taken = _count_positionals(words, by_name)
    found = _values(positionals[taken]) if taken < len(positionals) else ()
    return found if words else [*commands.within(command), *found]


def _count_positionals(words: Sequence[str], by_name: dict[str, Action]) -> int:
    found, is_value = 0, False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in by_name and by_name[word].nargs != 0
        else:
            found += 1
    return found


def _values(action: Action) -> Iterable[str]:
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return _SOURCES[action.dest]() if action.dest in _SOURCES else ()


def _jobs() -> list[str]:
    """The newest first."""
    try:
        with os.scandir(jobs_folder()) as entries:
            found = [(entry.stat().st_mtime, entry.name) for entry in entries if is_name(entry.name)]
    except (OSError, InvalidArgument):
        return []
    return [name for _, name in sorted(found, reverse=True)]


def _backends() -> Iterable[str]:
    from ... import backends

    return backends.names()


def _instance_types() -> Iterable[str]:
    from ...spec import instances

    return [*instances.names(), *instances.SCHEDULED, *instances.ON_EXECUTORS]


_SOURCES: dict[str, Callable[[], Iterable[str]]] = {
    "job": _jobs,
    "backend": _backends,
    "instance_type": _instance_types,
}
