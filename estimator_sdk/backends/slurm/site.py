"""The defaults of a site: options of Slurm that its users need not write into each script."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InvalidArgument
from ...values.home import regular_file
from .options import DICTS, GPUS, SlurmOptions

FILE = "slurm.toml"
_CONFIG_VARIABLE = "XDG_CONFIG_HOME"


class Defaults(NamedTuple):
    """What a file says."""

    path: Path
    options: Mapping[str, object]


def chosen(given: Mapping[str, object]) -> tuple[SlurmOptions, Path | None]:
    """The options of a job over the site's defaults, and the file of those; None where there is none.

    Raises InvalidArgument, which names the file where that is wrong.
    """
    defaults = find()
    if defaults is None:
        return SlurmOptions.from_document(given), None
    SlurmOptions.from_document(defaults.options, str(defaults.path))
    both = {**_not_replaced(defaults.options, given), **given}
    for option in DICTS:
        others: list[Any] = [each[option] for each in (defaults.options, given) if option in each]
        if all(isinstance(each, Mapping) for each in others):
            both[option] = {name: value for each in others for name, value in each.items()}
    return SlurmOptions.from_document(both), defaults.path


def _not_replaced(defaults: Mapping[str, object], given: Mapping[str, object]) -> Mapping[str, object]:
    """The defaults, less those of GPUs where a job says how many it needs, in either way."""
    is_said = not given.keys().isdisjoint(GPUS)
    return {name: value for name, value in defaults.items() if not is_said or name not in GPUS}


def find() -> Defaults | None:
    """What the current folder says or, without a file there, the user's configuration.

    Raises InvalidArgument for a file that cannot be read.
    """
    for path in (Path(FILE).absolute(), _user_folder() / FILE):
        try:
            with open(path, encoding="utf-8", opener=regular_file) as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from None
        return Defaults(path, _parsed(path, text))
    return None


def _user_folder() -> Path:
    given = Path(os.environ.get(_CONFIG_VARIABLE, ""))
    try:
        return (given if given.is_absolute() else Path.home() / ".config") / "estimator-sdk"
    except RuntimeError:  # of a user without a home
        return Path(os.devnull)


def _parsed(path: Path, text: str) -> Mapping[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        options: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from None
    return options


def _unreadable(path: Path, error: object) -> InvalidArgument:
    what = f"the defaults for Slurm in {path} cannot be read: {error}"
    return InvalidArgument("slurm", f"{what}; fix the file, or remove it")
