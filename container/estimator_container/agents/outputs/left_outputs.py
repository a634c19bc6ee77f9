"""What a script has left in a folder, as far as a store of files can hold it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from ..watching.state import PATH_MAX, Stamp

_LINKS = 40  # that the kernel follows one after the other, path_resolution(7)


@dataclass
class LeftOutputs:
    """What lies below a folder, by its path there."""

    files: dict[str, Stamp] = field(default_factory=dict)
    """Files, and links to files of the folder, of which a store can only hold copies."""
    targets: dict[str, str] = field(default_factory=dict)
    """The path of the file that such a link leads to."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why each of the others stays behind: the rest of a sentence that begins with its name."""


def read(root: str, named: str = "") -> LeftOutputs:
    """What a folder holds into which nobody writes; `named` is the path by which the script knew it."""
    found = LeftOutputs()
    waiting = [""] if os.path.lexists(root) else []
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError as error:
            found.left_out[folder] = f"cannot be read: {error.strerror}"
            continue
        for entry in entries:
            name = os.path.join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False) and len(os.fsencode(entry.path)) < PATH_MAX:
                waiting.append(name)
            else:
                _take(found, name, entry, root, named)
    return found


def _take(found: LeftOutputs, name: str, entry: os.DirEntry[str], root: str, named: str) -> None:
    if len(os.fsencode(entry.path)) >= PATH_MAX:
        found.left_out[name] = "is too long for a path"
    elif entry.is_file(follow_symlinks=False):
        found.files[name] = Stamp.from_status(entry.stat(follow_symlinks=False))
    elif not entry.is_symlink():
        found.left_out[name] = "is a device, a FIFO or a socket"
    else:
        path = _end_of_link(name, root, named or root)
        reason = _reason_against(path, os.readlink(entry.path), root)
        if reason:
            found.left_out[name] = reason
        else:
            found.targets[name] = path
            found.files[name] = Stamp.from_status(os.stat(path))


def _end_of_link(name: str, root: str, named: str) -> str:
    """The path that a link leads to, where a target below `named` means one below the folder."""
    path = os.path.join(root, name)
    for _ in range(_LINKS):
        if not os.path.islink(path):
            break
        target = os.readlink(path)
        if target == named or target.startswith(f"{named}/"):
            target = root + target[len(named) :]
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.realpath(path)


def _reason_against(path: str, target: str, root: str) -> str:
    """Why the link with that target, whose end is `path`, stays behind; empty for one to a file of the folder."""
    if not f"{path}/".startswith(f"{os.path.realpath(root)}/"):
        return f"is a link to {target!r}, outside the folder"
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return f"is a link to {target!r}, which does not exist"
    return "" if stat.S_ISREG(mode) else f"is a link to {target!r}, which is not a file"
