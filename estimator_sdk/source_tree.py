"""The files of a source folder, as they will lie in the code folder of each instance."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from pathlib import Path

from .errors import InvalidArgument
from .ignore_rules import IgnoreRules

Members = dict[str, Path]
"""Name in the code folder -> path on this machine, folders and links included."""


def members(root: Path, argument: str, prefix: str = "") -> Members:
    """All that is under the folder `root`, empty folders and links too, without what is left out by rule.

    `prefix` is put before each name. Raises InvalidArgument, which names `argument`, for a file that cannot
    be read, for a link that leads out of the folder, and for what is no file, folder or link.
    """
    rules = IgnoreRules.of(root)
    real_root = Path(os.path.realpath(root))
    return {prefix + name: path for name, path in _walk(root, "", rules, real_root, argument)}


def check_file(path: Path, argument: str) -> None:
    """Raises InvalidArgument for what is no regular file, or cannot be read by this user."""
    if not stat.S_ISREG(path.lstat().st_mode):
        what = f"{path} is neither a file nor a folder nor a link"
        raise InvalidArgument(argument, f"{argument}: {what}; remove it, or leave it out")
    if not os.access(path, os.R_OK):
        what = f"{path} cannot be read by this user"
        raise InvalidArgument(argument, f"{argument}: {what}; change its permissions, or leave it out")


def _walk(folder: Path, prefix: str, rules: IgnoreRules, real_root: Path, argument: str) -> Iterator[tuple[str, Path]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        what = f"the folder {folder} cannot be read: {error.strerror}"
        raise InvalidArgument(argument, f"{argument}: {what}; change its permissions, or leave it out") from None
    for entry in entries:
        name, path = prefix + entry.name, Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if rules.leave_out(name, is_folder):
            continue
        if entry.is_symlink():
            _check_link(name, path, real_root, argument)
        elif not is_folder:
            check_file(path, argument)
        yield name, path
        if is_folder:
            yield from _walk(path, f"{name}/", rules, real_root, argument)


def _check_link(name: str, path: Path, real_root: Path, argument: str) -> None:
    """A link is copied as a link, so what it names must be in the code folder too."""
    target = str(path.readlink())
    lexical = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    leaves = posixpath.isabs(target) or lexical.split("/")[0] == ".."
    if leaves or not Path(os.path.realpath(path)).is_relative_to(real_root):
        what = f"{path} is a link to {target}, which will not be there on the instances"
        hint = "use a relative link to something inside the folder, a copy, or dependencies="
        raise InvalidArgument(argument, f"{argument}: {what}; {hint}")
