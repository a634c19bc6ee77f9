"""The files of a source folder, as they will lie in the code folder of each instance."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import EstimatorError, InvalidArgument
from .ignore_rules import FILE, GIT_FILE, IgnoreRules, Reason

_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device"}


@dataclass
class SourceTree:
    """What there is of a folder, links included, without what is left out."""

    members: dict[str, Path] = field(default_factory=dict)
    """Name in the code folder -> path on this machine, folders and links included."""
    targets: dict[str, str] = field(default_factory=dict)
    """Name of a link -> what it leads to in the code folder, where its own words would not."""
    left_out: dict[str, Reason | str] = field(default_factory=dict)
    """Name -> the rule that leaves it out; or what it is, where the hosts cannot have it."""

    def add(self, other: SourceTree) -> None:
        """Add all that another tree has; its entries replace those of the same name."""
        self.members.update(other.members)
        self.targets.update(other.targets)
        self.left_out.update(other.left_out)

    def left_out_above(self, name: str) -> str | None:
        """What is left out and is, or holds, this name; None where nothing is."""
        parts = name.split("/")
        paths = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return next((path for path in paths if path in self.left_out), None)


def read(root: Path, argument: str, prefix: str = "", with_git: bool = False) -> SourceTree:
    """All that is under the folder `root`, empty folders and links too, without what is left out by rule.

    So are the folders that hold the jobs, links that lead out of the folder, and what is not a file, a folder or a
    link. `prefix` is put before each name; `with_git` has `.gitignore` files heard too. Raises InvalidArgument, which
    names `argument`, for what cannot be read.
    """
    walk = _Walk(argument, Path(os.path.realpath(root)), prefix)
    walk.into(root, "", IgnoreRules.around(root, with_git))
    return walk.tree


def check_file(path: Path, argument: str) -> None:
    """Raises InvalidArgument for what is no regular file, or cannot be read by this user."""
    if not stat.S_ISREG(path.lstat().st_mode):
        what = f"{path} is neither a file nor a folder nor a link"
        raise InvalidArgument(argument, f"{argument}: {what}; remove it, or leave it out")
    if not os.access(path, os.R_OK):
        what = f"{path} cannot be read by this user"
        raise InvalidArgument(argument, f"{argument}: {what}; change its permissions, or leave it out")


def _kept_folders() -> frozenset[str]:
    """Where the SDK keeps jobs and bundles, if there is such a place."""
    from ..values.home import bundles_folder, home, jobs_folder  # not loaded by `import estimator_sdk`

    with contextlib.suppress(EstimatorError):
        return frozenset(map(os.path.realpath, (home(), jobs_folder(), bundles_folder())))
    return frozenset()


@dataclass
class _Walk:
    """One way through a source folder."""

    argument: str
    real_root: Path
    prefix: str
    tree: SourceTree = field(default_factory=SourceTree)
    kept: frozenset[str] = field(default_factory=_kept_folders)

    def into(self, folder: Path, prefix: str, rules: IgnoreRules) -> None:
        """Take what is in a folder under `rules`; `prefix` is its name in the tree, with a slash."""
        entries = self._entries(folder)
        if any(entry.name in (FILE, GIT_FILE) for entry in entries):
            rules = rules.in_folder(prefix, folder)
        for entry in entries:
            name, path = prefix + entry.name, Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            reason = self._of_jobs(name) or rules.leaves_out(name, path, is_folder) or self._unusable(name, entry)
            if reason is not None:
                self.tree.left_out[self.prefix + name] = reason
                continue
            if not is_folder and not entry.is_symlink():
                check_file(path, self.argument)
            self.tree.members[self.prefix + name] = path
            if is_folder:
                self.into(path, f"{name}/", rules)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            return sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            what = f"the folder {folder} cannot be read: {error.strerror}"
            hint = "change its permissions, or leave it out"
            raise InvalidArgument(self.argument, f"{self.argument}: {what}; {hint}") from None

    def _of_jobs(self, name: str) -> Reason | None:
        """Why a folder that holds jobs stays out: each job would carry all those before it."""
        return Reason.ALWAYS if str(self.real_root / name) in self.kept else None

    def _unusable(self, name: str, entry: os.DirEntry[str]) -> str | None:
        """What an entry is, where the hosts cannot have it; None where they can."""
        if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
            return None
        if not entry.is_symlink():
            return _KINDS.get(stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode))
        target = str(Path(entry.path).readlink())
        real = Path(os.path.realpath(entry.path))
        if not real.is_relative_to(self.real_root):
            return f"a link to {target}"
        lexical = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if posixpath.isabs(target) or lexical.split("/")[0] == "..":
            inside = real.relative_to(self.real_root).as_posix()
            self.tree.targets[self.prefix + name] = posixpath.relpath(inside, posixpath.dirname(name) or ".")
        return None
