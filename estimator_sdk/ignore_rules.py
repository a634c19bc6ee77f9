"""What of a source folder stays out of its bundle: version control, caches, what `.estimatorignore` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from .errors import InvalidArgument

FILE = ".estimatorignore"

_ALWAYS = (
    f"/{FILE}",
    ".git",
    ".hg/",
    ".svn/",
    "__pycache__/",
    ".venv*/",
    ".tox/",
    ".nox/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".ipynb_checkpoints/",
    ".DS_Store",
)


@dataclass(frozen=True)
class _Rule:
    parts: tuple[str, ...]
    """A pattern for each segment of a path; `**` stands for any number of segments."""
    only_folders: bool
    takes_back: bool
    """A match means: not left out after all."""


@dataclass(frozen=True)
class IgnoreRules:
    """Rules in the manner of `.gitignore`; the last one that matches decides.

    A blank line and one that starts with `#` say nothing. `!` takes back, a final `/` means folders only, a
    `/` elsewhere ties the pattern to the source folder; `*`, `?`, `[ab]` stay within a segment, `**` spans
    them. What is in a folder that is left out is left out.
    """

    rules: tuple[_Rule, ...]

    @classmethod
    def of(cls, folder: Path) -> IgnoreRules:
        """Those that always hold, then those of the folder's own file."""
        try:
            lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        except (OSError, ValueError) as error:
            raise InvalidArgument("source_dir", f"{folder / FILE} cannot be read: {error}; mend it") from None
        return cls.parse((*_ALWAYS, *lines))

    @classmethod
    def parse(cls, lines: Iterable[str]) -> IgnoreRules:
        stripped = (line.strip() for line in lines)
        return cls(tuple(_rule(line) for line in stripped if line.strip("!/") and not line.startswith("#")))

    def leave_out(self, name: str, is_folder: bool) -> bool:
        """Whether the path `name`, relative to the source folder, stays out.

        >>> IgnoreRules.parse(["*.csv", "!small.csv"]).leave_out("data/big.csv", False)
        True
        """
        decided = False
        for rule in self.rules:
            if rule.takes_back == decided and (is_folder or not rule.only_folders):
                decided ^= _matches(rule.parts, name.split("/"))
        return decided


def _rule(line: str) -> _Rule:
    pattern = line.removeprefix("!")
    path = pattern.rstrip("/")
    parts = path.lstrip("/").split("/") if "/" in path else ["**", path]
    return _Rule(tuple(parts), only_folders=pattern.endswith("/"), takes_back=line.startswith("!"))


def _matches(parts: Sequence[str], segments: Sequence[str]) -> bool:
    if not parts or not segments:
        return not parts and not segments
    if parts[0] == "**":
        return _matches(parts[1:], segments) or _matches(parts, segments[1:])
    return fnmatchcase(segments[0], parts[0]) and _matches(parts[1:], segments[1:])
