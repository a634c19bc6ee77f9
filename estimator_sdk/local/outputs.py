"""Make the archives of a job from what its hosts left."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

# Weights hardly compress, so the fastest level costs least for the same size.
COMPRESSION_LEVEL = 1


def archive(folders: Iterable[Path], target: Path) -> list[str]:
    """Put the contents of the folders into one `.tar.gz`, which appears under its name when it is whole.

    Where two folders hold the same name, the first one's is taken; the names left out are returned. Raises OSError
    when the archive cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    taken: set[str] = set()
    left_out: list[str] = []
    try:
        with tarfile.open(draft, "w:gz", compresslevel=COMPRESSION_LEVEL) as tar:
            for folder in folders:
                names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
                for name in names:
                    if name in taken:
                        left_out.append(name)
                        continue
                    taken.add(name)
                    tar.add(folder / name, arcname=name)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)  # of an archive that could not be finished
    return left_out


def has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
