"""Bring a model from where a job left it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import EstimatorError

if TYPE_CHECKING:
    from estimator_container.storage import Progress


def fetch(uri: str, target: Path, progress: Progress | None = None) -> None:
    """Put a model into the folder `target`: what is in its archive, or below its prefix where it is none.

    Raises EstimatorError where the store does not hand it over.
    """
    if uri.endswith(".tar.gz"):
        with local_copy(uri, target, progress) as archive:
            _unpack(archive, target)
    else:
        _copy_tree(uri, target, progress)


@contextmanager
def local_copy(uri: str, folder: Path, progress: Progress | None = None) -> Iterator[Path]:
    """The file at a URI; where it is in a store, a copy that is there as long as the block runs."""
    if uri.startswith("file://"):
        yield Path(uri.removeprefix("file://"))
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


def _unpack(archive: Path, target: Path) -> None:
    import tarfile

    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:
            tar.extractall(target)
