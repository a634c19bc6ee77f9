"""From a command as it is typed, such as `python train.py --lr 0.1`, to the estimator's arguments that run it."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_container.contract import hyperparameters as container_hp
from estimator_container.contract.entry_point import PACKAGE_FILES, PYTHONS, check_name
from estimator_container.runtime.errors import ConfigurationError

from ..errors import InvalidArgument
from ..values.naming import suggestion

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_NAME = re.compile(r"-([A-Za-z])|--([A-Za-z][A-Za-z0-9_.-]+)")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_MOST_HYPERPARAMETERS = 60  # the service carries 100, and the toolkit needs some of them


def estimator_arguments(words: Sequence[str], folder: str = ".") -> dict[str, Any]:
    """What to give an Estimator so that it runs a command in a folder, each word arriving byte for byte.

    `python train.py ARGS` and `./program ARGS` become an entry point. Its arguments are carried as they are, and
    where they are options with a value each they are hyperparameters besides, so that `SM_HPS` and a list of jobs show
    them. Anything else becomes `command`: `bash run.sh`, `python -m module`, and a script in a folder with a `setup.py`
    or `pyproject.toml`, which would be installed as an entry point. Raises InvalidArgument for a script that is
    not there.

    >>> estimator_arguments(["bash", "-c", "echo $HOME"])
    {'source_dir': '.', 'command': ('bash', '-c', 'echo $HOME')}
    """
    if not words:
        raise InvalidArgument("command", "there is no command; write it after --, such as -- python train.py --lr 0.1")
    _check_script(words, folder)
    entry_point, arguments = _entry_point(words, folder)
    if entry_point is None:
        return {"source_dir": folder, "command": tuple(words)}
    found: dict[str, Any] = {"source_dir": folder, "entry_point": entry_point}
    hyperparameters = hyperparameters_of(arguments)
    if hyperparameters:
        found["hyperparameters"] = hyperparameters
    if container_hp.to_arguments(hyperparameters) != list(arguments):
        found["arguments"] = tuple(arguments)
    return found


def hyperparameters_of(arguments: Sequence[str]) -> dict[str, object]:
    """Arguments as hyperparameters, where all of them are options with one value each and no name comes twice.

    A number is one where it is written as Python writes it. {} for any others.

    >>> hyperparameters_of(["--lr", "0.1", "-b", "32", "--name", "1e3"])
    {'lr': 0.1, 'b': 32, 'name': '1e3'}
    >>> hyperparameters_of(["data", "--lr", "0.1"]), hyperparameters_of(["--verbose", "--lr"])
    ({}, {})
    """
    found: dict[str, object] = {}
    if len(arguments) % 2 or len(arguments) > 2 * _MOST_HYPERPARAMETERS:
        return {}
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):
        match = _NAME.fullmatch(option)
        name = match and (match[1] or match[2])
        looks_like_an_option = value.startswith("-") and not _NUMBER.fullmatch(value)
        if not name or name in found or container_hp.is_reserved(name) or looks_like_an_option:
            return {}
        found[name] = _value(value)
    return found


def named_by(words: Sequence[str]) -> str:
    """The word of a command that names what is run: the script or module of an interpreter, else the program.

    >>> named_by(["python", "-m", "pkg.train", "--lr", "1"]), named_by(["bash", "run.sh"]), named_by(["./fit", "x"])
    ('pkg.train', 'run.sh', './fit')
    """
    script = script_of(words)
    if script is not None:
        return script
    return words[2] if words[0] in PYTHONS and words[1:2] == ["-m"] and len(words) > 2 else words[0]


def _entry_point(words: Sequence[str], folder: str) -> tuple[str | None, Sequence[str]]:
    """The entry point that does what the command does, and its arguments; None where there is none."""
    is_python = words[0] in PYTHONS
    written = words[1] if is_python and len(words) > 1 else words[0]
    if is_python != written.endswith(".py") or (not is_python and "/" not in written):
        return None, ()
    if is_python and any((Path(folder) / name).is_file() for name in PACKAGE_FILES):
        return None, ()
    name = _inside(written, folder)
    try:
        check_name(name)
    except ConfigurationError:  # such as one with a space, which the contract has no way to say
        return None, ()
    return name, words[2:] if is_python else words[1:]


def _check_script(words: Sequence[str], folder: str) -> None:
    """Raises InvalidArgument for a script that the folder does not have: it will be nowhere else."""
    written = script_of(words)
    if written is None:
        return
    name = _inside(written, folder)
    path = Path(folder, name)
    if name.startswith("..") or posixpath.isabs(name):
        what = f"the script {written!r} is not inside {folder!r}, whose files are what the hosts get"
        raise InvalidArgument(
            "command", f"{what}; run the command in the script's folder, or name that folder with --source-dir"
        )
    if not path.is_file():
        near = suggestion(path.name, [each.name for each in path.parent.glob("*") if each.is_file()])
        raise InvalidArgument("command", f"the script {written!r} is not a file in {folder!r}; {near}")


def script_of(words: Sequence[str]) -> str | None:
    """The word that must be a file of the code; None where none must."""
    program = posixpath.basename(words[0])
    if program in PYTHONS or program in _SHELLS:
        return words[1] if len(words) > 1 and not words[1].startswith("-") else None
    is_of_the_machine = posixpath.isabs(words[0]) and not os.path.realpath(words[0]).startswith(os.path.realpath("."))
    return words[0] if "/" in words[0] and not is_of_the_machine else None


def _inside(written: str, folder: str) -> str:
    """A path as it is called in the folder; one that is written relative is taken so."""
    if not posixpath.isabs(written):
        return posixpath.normpath(written)
    relative = os.path.relpath(written, os.path.abspath(folder))  # noqa: PTH100 - not through links
    return written if relative.startswith("..") else relative


def _value(text: str) -> object:
    """The number that Python writes just so, else the text."""
    if not _NUMBER.fullmatch(text):
        return text
    value = float(text) if "." in text else int(text)
    return value if str(value) == text else text
