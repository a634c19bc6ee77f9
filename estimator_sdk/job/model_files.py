"""Bring a model from where a job left it."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import EstimatorError
from ..values import naming

if TYPE_CHECKING:
    from estimator_container.storage import Progress


def fetch(uri: str, target: Path, progress: Progress | None = None) -> None:
    """Put a model into the folder `target`: what is in its archive, or below its prefix where it is none.

    Warns of what an archive holds that a model can do without: devices, and links that lead out. Raises EstimatorError
    where the store does not hand the model over, and for an archive that is damaged or reaches out of `target`;
    nothing of that is left. No link in `target` is followed.
    """
    with tempfile.TemporaryDirectory(prefix=".estimator-", dir=target) as folder:
        model = Path(folder) / "model"
        model.mkdir()
        if uri.endswith(".tar.gz"):
            with local_copy(uri, Path(folder), progress) as archive:
                _unpack(uri, archive, model)
        else:
            _copy_tree(uri, model, progress)
        _move(uri, model, target)


@contextmanager
def local_copy(uri: str, folder: Path, progress: Progress | None = None) -> Iterator[Path]:
    """The path of the file at a URI; for a file in a store, that of a copy that exists while the block runs."""
    if uri.startswith("file://"):
        path = Path(uri.removeprefix("file://"))
        if path.exists() and not path.is_file():  # a FIFO would be waited for
            raise EstimatorError(f"{uri} cannot be read: it is not a file")
        yield path
        return
    from estimator_container.storage import StorageError, open_store

    parent, _, name = uri.rpartition("/")
    copy = folder / f".{name}.{os.getpid()}"
    try:
        open_store(parent).download_many([(name, str(copy))], progress=progress)
        yield copy
    except StorageError as error:
        raise EstimatorError(f"{uri} cannot be downloaded: {error}") from None
    finally:
        copy.unlink(missing_ok=True)


def _copy_tree(uri: str, target: Path, progress: Progress | None) -> None:
    from estimator_container.storage import StorageError, open_store

    try:
        store = open_store(uri.rstrip("/"))
        store.download_many(((each, str(target / each.key)) for each in store.list()), progress=progress)
    except StorageError as error:
        raise EstimatorError(f"{uri} cannot be downloaded: {error}") from None


def _unpack(uri: str, path: Path, folder: Path) -> None:
    """Fill the empty folder. Raises EstimatorError."""
    from estimator_container.runtime import archive

    left_out: list[str] = []
    try:
        archive.unpack(str(path), str(folder), _file_mode, 0o777, left_out.append)
    except archive.Unsafe as found:
        raise EstimatorError(f"{uri} holds {found}: it was refused, and nothing was unpacked") from None
    except Exception as error:  # besides OSError whatever a decompressor says of a damaged archive
        raise EstimatorError(f"{uri} cannot be unpacked: {error}; nothing was kept") from None
    if left_out:
        what = naming.some(left_out)
        warnings.warn(f"{uri} was unpacked without what does not belong in a model: {what}", stacklevel=4)


def _file_mode(bits: int) -> int:
    """No more than the archive grants, nothing that others may write, and no setuid."""
    return (bits & 0o755 if bits & 0o100 else bits & 0o644) | 0o600


def _move(uri: str, source: Path, target: Path) -> None:
    """Put a tree into a folder, file by file, over what is there but through no link. Raises EstimatorError."""
    waiting = [(source, target)]
    try:
        while waiting:
            here, there = waiting.pop()
            for path in here.iterdir():
                place = there / path.name
                if path.is_symlink() or not path.is_dir():
                    path.replace(place)
                elif place.is_symlink():
                    raise OSError(f"{place} is a link, but in the model it is a folder")
                else:
                    place.mkdir(exist_ok=True)
                    waiting.append((path, place))
    except OSError as error:
        what = f"{uri} cannot be unpacked into {target}: {error}"
        raise EstimatorError(f"{what}; choose an empty folder") from None
