"""The user's code: where it is on this machine, and the bundle that carries it to the instances."""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from estimator_container.contract.entry_point import check_name
from estimator_container.runtime.errors import ConfigurationError

from ..errors import EstimatorError, InvalidArgument
from ..values.naming import some, suggestion
from . import source_tree
from .ignore_rules import FILE as IGNORE_FILE
from .ignore_rules import GIT_FILE, Reason
from .source_tree import SourceTree

_TOLD = {Reason.CREDENTIALS: "it holds credentials", Reason.GIT: f"{GIT_FILE} names it"}
"""Rules of which nobody may have thought, and why they leave something out."""


@dataclass(frozen=True)
class Source:
    """What `entry_point=`, `source_dir=` and `dependencies=` say."""

    entry_point: str | None
    """A path in `source_dir`; without one, the path of a file on this machine. None: a command or steps run there."""
    source_dir: str | None = None
    """A folder of this machine, which becomes the code folder."""
    dependencies: tuple[str, ...] = ()
    """Files and folders that are put into the code folder under their own names."""
    script: str | None = None
    """The file in `source_dir` that a command runs, where one is known to."""
    with_git: bool = False
    """Whether what `.gitignore` files name stays out of `source_dir` too."""

    @property
    def program(self) -> str | None:
        """The entry point's name in the code folder."""
        if self.entry_point is None or self.source_dir is not None:
            return self.entry_point
        return posixpath.basename(self.entry_point)

    def check(self) -> None:
        """Raises InvalidArgument for code that is missing, unreadable or not allowed; writes nothing."""
        self._read()

    def bundle(self, path: str | os.PathLike[str]) -> str:
        """Write the code to the new `tar.gz` file `path`, and return its SHA-256 in hex.

        The same code gives the same bytes. With `source_dir` the whole folder is in it, without it the entry
        point alone. Warns of what is left out that nobody would expect. Raises InvalidArgument as `check` does, and
        EstimatorError for an archive that cannot be written.
        """
        from . import bundle

        tree = self._read()
        for sentence in _about(tree):
            warnings.warn(sentence, stacklevel=2)
        try:
            return bundle.write(tree.members, Path(path), tree.targets)
        except OSError as error:
            raise EstimatorError(
                f"the code cannot be bundled into {path}: {error}; make its files readable, or set ESTIMATOR_HOME to a "
                "folder that you can write to, with free space"
            ) from error

    def _read(self) -> SourceTree:
        for argument, value in (("entry_point", self.entry_point), ("source_dir", self.source_dir)):
            if value is not None and "://" in value:
                raise InvalidArgument(argument, f"{argument} is {value!r}; give a path on this machine")
        tree = self._tree(self.source_dir) if self.source_dir is not None else self._lone_file(self.entry_point or "")
        for index, dependency in enumerate(self.dependencies):
            _add_dependency(tree, dependency, f"dependencies[{index}]")
        return tree

    def _lone_file(self, entry_point: str) -> SourceTree:
        path = Path(entry_point)
        if not path.is_file():
            near = suggestion(path.name, _names(path.parent))
            raise _refused("is not a file" if path.exists() else "does not exist", entry_point, near)
        _check_allowed(path.name, "rename the file")
        source_tree.check_file(Path(os.path.realpath(path)), "entry_point")
        # The instances have no use for a link, only for what it leads to.
        return SourceTree({path.name: Path(os.path.realpath(path))})

    def _tree(self, folder: str) -> SourceTree:
        root = Path(folder)
        if not root.is_dir():
            what = "is not a folder" if root.exists() else "does not exist"
            near = suggestion(root.name, _names(root.parent))
            raise InvalidArgument("source_dir", f"source_dir {folder!r} {what}; {near}")
        tree = source_tree.read(root, "source_dir", with_git=self.with_git)
        if self.entry_point is not None:
            _check_program(self.entry_point, root, tree)
        if self.script is not None:
            _check_is_in("command", "script", self.script, root, tree)
        return tree


def _check_program(name: str, root: Path, tree: SourceTree) -> None:
    outside = posixpath.isabs(name) or posixpath.normpath(name).startswith("..")
    if outside:
        inside = os.path.relpath(os.path.realpath(name), os.path.realpath(root))
        hint = f"write {inside!r}" if inside in tree.members else "write a path relative to source_dir"
        raise _refused(f"is not a path inside source_dir {str(root)!r}", name, hint)
    files = [member for member, path in tree.members.items() if path.is_file()]
    if name not in files:
        if posixpath.normpath(name) not in files and (root / name).is_file():
            _check_is_in("entry_point", "entry_point", name, root, tree)
        else:
            raise _refused(f"is not a file in source_dir {str(root)!r}", name, suggestion(name, files))
    _check_allowed(name, "rename it")


def _check_is_in(argument: str, title: str, name: str, root: Path, tree: SourceTree) -> None:
    """Raises InvalidArgument for a file that is in the folder `root`, and left out of the code."""
    real = os.path.relpath(os.path.realpath(root / name), os.path.realpath(root))  # behind links inside the folder
    for path in (posixpath.normpath(name), real):
        left_out = tree.left_out_above(path)
        if left_out is None:
            continue
        reason = tree.left_out[left_out]
        if isinstance(reason, Reason):
            slash = "" if left_out == path else "/"
            what, hint = f"by {reason.value}", f"add the line !{left_out}{slash} to {IGNORE_FILE}"
        else:
            what = f"because {left_out} is {reason}, which the hosts cannot use"
            hint = "put a copy in its place"
        raise InvalidArgument(argument, f"{title} {name!r} is left out of {str(root)!r} {what}; {hint}")


def _about(tree: SourceTree) -> Iterator[str]:
    """What of the left out should be told: what the hosts cannot have, credentials, and what git alone leaves out."""
    unusable = [f"{name}, {reason}" for name, reason in tree.left_out.items() if isinstance(reason, str)]
    if unusable:
        yield f"left out of the code, because the hosts cannot use it: {some(unusable, between='; ')}"
    for reason, why in _TOLD.items():
        names = [name for name, each in tree.left_out.items() if each is reason]
        if names:
            hint = f"a line !NAME in {IGNORE_FILE} includes one again"
            shown = ", ".join(names) if reason is Reason.CREDENTIALS else some(names)
            yield f"left out of the code, because {why}: {shown}; {hint}"


def _add_dependency(tree: SourceTree, dependency: str, argument: str) -> None:
    path = Path(os.path.abspath(dependency))  # noqa: PTH100 - the name of "lib/." is "lib"
    name = path.name
    if not path.exists():
        near = suggestion(name, _names(path.parent))
        raise InvalidArgument(argument, f"{argument} {dependency!r} does not exist; {near}")
    if name in tree.members:
        what = f"{argument} {dependency!r} would collide with another {name!r} in the code folder"
        raise InvalidArgument(argument, f"{what}; rename one of them")
    real = Path(os.path.realpath(path))
    if real.is_dir():
        tree.members[name] = real
        tree.add(source_tree.read(real, argument, f"{name}/"))
    else:
        source_tree.check_file(real, argument)
        tree.members[name] = real


def _check_allowed(name: str, hint: str) -> None:
    try:
        check_name(name)
    except ConfigurationError as error:
        raise InvalidArgument("entry_point", f"entry_point: {error}; {hint}") from None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def _refused(what: str, entry_point: str, hint: str) -> InvalidArgument:
    return InvalidArgument("entry_point", f"entry_point {entry_point!r} {what}; {hint}")
