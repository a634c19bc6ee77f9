"""What a folder held at one moment: values, with no word on how they were found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

PERMISSIONS = 0o777
FOLDER_PERMISSIONS = 0o1777  # and that only its owner may remove a file
TICK_NS = 10_000_000  # a file written again within the kernel's clock tick could have the same time as before
PATH_MAX = 4096  # bytes with the NUL at the end, linux/limits.h


@dataclass(frozen=True)
class Stamp:
    """Tells a file from what it was: any write, and any other file in its place, changes it."""

    inode: int
    size: int
    mtime_ns: int
    mode: int
    """Permission bits; those that lend a program its owner's rights are not kept, and so are no news."""
    ctime_ns: int
    """When anything of it was changed. No program can set it, as `cp -p` and `tar` set the other time."""

    @classmethod
    def from_status(cls, status: os.stat_result) -> Stamp:
        """The stamp of a file with this status, as `os.stat` returns it."""
        mode = status.st_mode & PERMISSIONS
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, mode, status.st_ctime_ns)


@dataclass
class FolderState:
    """What the folder held at one moment. Paths are relative to it."""

    files: dict[str, Stamp] = field(default_factory=dict)
    """Files that nobody was writing."""
    unsettled: set[str] = field(default_factory=set)
    """Files that somebody had open for writing."""
    reopened: set[str] = field(default_factory=set)
    """Those of them that had been whole before: a state without them was never there."""
    folders: dict[str, int] = field(default_factory=dict)
    """Path -> permission bits."""
    links: dict[str, str] = field(default_factory=dict)
    news: int = field(default=0, compare=False)
    """How often the folder had changed by then; see `WatchedFolder.is_still`."""

    def leave_out(self, paths: Iterable[str]) -> None:
        """Take files for such as somebody writes."""
        for path in paths:
            del self.files[path]
            self.unsettled.add(path)
