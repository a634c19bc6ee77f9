"""What of a source folder stays out of its bundle: version control, environments, caches, credentials, what ignore
files name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE = ".estimatorignore"
GIT_FILE = ".gitignore"

_ALWAYS = (FILE, ".git", ".DS_Store")
_ALWAYS_AS_FOLDERS = (
    ".hg",
    ".svn",
    "__pycache__",
    ".venv*",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".ipynb_checkpoints",
)
_OF_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta/history")
"""What a folder has that a virtual environment, or one of Conda, is in."""


class Reason(Enum):
    """Why a path stays out."""

    ALWAYS = "the rules that always apply"
    CREDENTIALS = "the rules that keep credentials from being sent"
    GIT = GIT_FILE
    OWN = FILE


@dataclass(frozen=True)
class _Layer:
    """The rules of one ignore file, which hold for what is below its folder."""

    reason: Reason
    skipped: int
    """Characters of a path relative to the source folder that lead to the file's folder."""
    before: str
    """What leads from the file's folder to the source folder, where it lies above that."""
    spec: GitIgnoreSpec

    def decides(self, name: str) -> bool | None:
        """Whether the last rule that matches leaves a path out; None where no rule does."""
        return self.spec.check_file(self.before + name[self.skipped :]).include


@dataclass(frozen=True)
class IgnoreRules:
    """The rules for one folder of a source tree; `in_folder` gives those of a folder in it.

    Ignore files mean what git takes them to mean: the last rule that matches decides, and what is in a folder that is
    left out is left out. A `.estimatorignore` has the last word, so `!name` in it takes back what else is left out.
    """

    with_git: bool
    layers: tuple[_Layer, ...] = ()
    credentials: frozenset[str] = frozenset()
    """Names of what holds some."""

    @classmethod
    def around(cls, folder: Path, with_git: bool = False) -> IgnoreRules:
        """Those that a source folder is under; with `with_git` what `.gitignore` files name is left out too.

        Those above the source folder hold as far as its repository goes, unless they name the source folder itself.
        Raises InvalidArgument for an ignore file that cannot be read.
        """
        from . import credential_files  # not loaded by `import estimator_sdk`

        return cls(with_git, _above(folder.resolve()) if with_git else (), credential_files.below(folder))

    def in_folder(self, prefix: str, folder: Path) -> IgnoreRules:
        """The rules in a folder whose names begin with `prefix`: these, and those of its own ignore files.

        Raises InvalidArgument as `around` does.
        """
        files = {Reason.OWN: FILE, **({Reason.GIT: GIT_FILE} if self.with_git else {})}
        found = ((reason, _spec(folder / name)) for reason, name in files.items())
        added = tuple(_Layer(reason, len(prefix), "", spec) for reason, spec in found if spec is not None)
        return replace(self, layers=self.layers + added)

    def leaves_out(self, name: str, path: Path, is_folder: bool) -> Reason | None:
        """Why the path `name`, relative to the source folder, stays out; None where it does not."""
        slashed = f"{name}/" if is_folder else name
        own = self._verdict(Reason.OWN, slashed)
        if own is not None:
            return Reason.OWN if own else None
        if _is_always_out(path, is_folder):
            return Reason.ALWAYS
        if name in self.credentials:
            return Reason.CREDENTIALS
        return Reason.GIT if self._verdict(Reason.GIT, slashed) else None

    def _verdict(self, reason: Reason, name: str) -> bool | None:
        """What the last rule of such files says that says something."""
        for layer in reversed(self.layers):
            if layer.reason is reason and (decided := layer.decides(name)) is not None:
                return decided
        return None


def _is_always_out(path: Path, is_folder: bool) -> bool:
    names = (*_ALWAYS, *_ALWAYS_AS_FOLDERS) if is_folder else _ALWAYS
    return any(fnmatchcase(path.name, pattern) for pattern in names) or (is_folder and _is_environment(path))


def _is_environment(folder: Path) -> bool:
    try:
        return any((folder / file).is_file() for file in _OF_ENVIRONMENTS)
    except OSError:  # whoever reads the folder says why it cannot be read
        return False


def _above(folder: Path) -> tuple[_Layer, ...]:
    """The rules that the repository around a source folder has for what is in it."""
    ways = [folder, *folder.parents]
    top = next((at for at, each in enumerate(ways) if (each / ".git").exists()), 0)
    found: list[tuple[Path, GitIgnoreSpec]] = []
    for at in range(top, 0, -1):
        if (spec := _spec(ways[at] / GIT_FILE)) is not None:
            found.append((ways[at], spec))
        decisions = [spec.check_file(_path(ways[at - 1], parent)).include for parent, spec in found]
        if [decision for decision in decisions if decision is not None][-1:] == [True]:
            return ()
    return tuple(_Layer(Reason.GIT, 0, _path(folder, parent), spec) for parent, spec in found)


def _path(folder: Path, parent: Path) -> str:
    return f"{folder.relative_to(parent).as_posix()}/"


def _spec(file: Path) -> GitIgnoreSpec | None:
    """The rules in a file; None where there are none. Raises InvalidArgument where it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8", errors="strict" if file.name == FILE else "surrogateescape")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidArgument("source_dir", f"{file} cannot be read: {error}; fix it, or remove it") from None
    return parse(text.splitlines())


def parse(lines: Iterable[str]) -> GitIgnoreSpec | None:
    """Rules in the manner of `.gitignore`, of which a line that is not a pattern matches nothing; None for none."""
    stripped = [line for line in lines if line.strip() and not line.startswith("#")]
    if not stripped:
        return None
    from pathspec import GitIgnoreSpec

    def is_pattern(line: str) -> bool:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            return False
        return True

    return GitIgnoreSpec.from_lines([line for line in stripped if is_pattern(line)])
