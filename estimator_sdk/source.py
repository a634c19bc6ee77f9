"""The user's code: where it is on this machine, and the bundle that carries it to the instances."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path

from estimator_container.configuration import ConfigurationError
from estimator_container.entry_point import check_name

from . import source_tree
from .errors import EstimatorError, InvalidArgument
from .ignore_rules import FILE as IGNORE_FILE
from .naming import suggestion


@dataclass(frozen=True)
class Source:
    """What `entry_point=`, `source_dir=` and `dependencies=` say."""

    entry_point: str | None
    """A path in `source_dir`; without one, the path of a file on this machine. None: a command or steps run there."""
    source_dir: str | None = None
    """A folder of this machine, which becomes the code folder."""
    dependencies: tuple[str, ...] = ()
    """Files and folders that are put into the code folder under their own names."""

    @property
    def program(self) -> str | None:
        """The entry point's name in the code folder."""
        if self.entry_point is None or self.source_dir is not None:
            return self.entry_point
        return posixpath.basename(self.entry_point)

    def check(self) -> None:
        """Raises InvalidArgument for code that is missing, unreadable or not allowed; writes nothing."""
        self._members()

    def bundle(self, path: str | os.PathLike[str]) -> str:
        """Write the code to the new `tar.gz` file `path`, and return its SHA-256 in hex.

        The same code gives the same bytes. With `source_dir` the whole folder is in it, without it the entry
        point alone. Raises InvalidArgument as `check` does, and EstimatorError for an archive that cannot be
        written.
        """
        from . import bundle

        try:
            return bundle.write(self._members(), Path(path))
        except OSError as error:
            raise EstimatorError(
                f"the code cannot be bundled into {path}: {error}; mend that, and try again"
            ) from error

    def _members(self) -> source_tree.Members:
        for argument, value in (("entry_point", self.entry_point), ("source_dir", self.source_dir)):
            if value is not None and "://" in value:
                raise InvalidArgument(argument, f"{argument} is {value!r}; give a path of this machine")
        members = (
            self._tree(self.source_dir) if self.source_dir is not None else self._lone_file(self.entry_point or "")
        )
        for index, dependency in enumerate(self.dependencies):
            _add_dependency(members, dependency, f"dependencies[{index}]")
        return members

    def _lone_file(self, entry_point: str) -> source_tree.Members:
        path = Path(entry_point)
        if not path.is_file():
            near = suggestion(path.name, _names(path.parent))
            raise _refused("is not a file" if path.exists() else "is not there", entry_point, near)
        _check_allowed(path.name, "rename the file")
        source_tree.check_file(Path(os.path.realpath(path)), "entry_point")
        # The instances have no use for a link, only for what it leads to.
        return {path.name: Path(os.path.realpath(path))}

    def _tree(self, folder: str) -> source_tree.Members:
        root = Path(folder)
        if not root.is_dir():
            what = "is not a folder" if root.exists() else "is not there"
            near = suggestion(root.name, _names(root.parent))
            raise InvalidArgument("source_dir", f"source_dir {folder!r} {what}; {near}")
        members = source_tree.members(root, "source_dir")
        if self.entry_point is not None:
            _check_program(self.entry_point, root, members)
        return members


def _check_program(name: str, root: Path, members: source_tree.Members) -> None:
    outside = posixpath.isabs(name) or posixpath.normpath(name).startswith("..")
    if outside:
        inside = os.path.relpath(os.path.realpath(name), os.path.realpath(root))
        hint = f"write {inside!r}" if inside in members else "write a path relative to source_dir"
        raise _refused(f"is not a path inside source_dir {str(root)!r}", name, hint)
    files = [member for member, path in members.items() if path.is_file()]
    if name not in files:
        if (root / name).is_file() and posixpath.normpath(name) not in files:
            raise _refused(f"is left out of {str(root)!r} by its {IGNORE_FILE}", name, f"add the line !{name}")
        raise _refused(f"is not a file in source_dir {str(root)!r}", name, suggestion(name, files))
    _check_allowed(name, "rename it")


def _add_dependency(members: source_tree.Members, dependency: str, argument: str) -> None:
    path = Path(os.path.abspath(dependency))  # noqa: PTH100 - the name of "lib/." is "lib"
    name = path.name
    if not path.exists():
        near = suggestion(name, _names(path.parent))
        raise InvalidArgument(argument, f"{argument} {dependency!r} is not there; {near}")
    if name in members:
        what = f"{argument} {dependency!r} would be put beside another {name!r} in the code folder"
        raise InvalidArgument(argument, f"{what}; rename one of them")
    real = Path(os.path.realpath(path))
    if real.is_dir():
        members.update({name: real, **source_tree.members(real, argument, f"{name}/")})
    else:
        source_tree.check_file(real, argument)
        members[name] = real


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
