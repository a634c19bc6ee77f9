"""Checkpoints of the examples: one file an epoch, that is either whole or not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def path_of(folder: Path, epoch: int, suffix: str) -> Path:
    """Where the checkpoint lies that was written when `epoch` epochs were done."""
    return folder / f"epoch-{epoch:04d}{suffix}"


def newest(folder: Path, suffix: str) -> tuple[int, Path] | None:
    """The epochs that the newest checkpoint has behind it, and its file; None when there is none."""
    name = re.compile(rf"epoch-(\d+){re.escape(suffix)}")
    found = [(int(match[1]), path) for path in folder.glob("*") if (match := name.fullmatch(path.name))]
    return max(found, default=None)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A hidden name to write to, which takes the name `path` once the block has ended without an error.

    A process that is killed while it writes so never leaves half a file under the final name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished-{path.name}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
