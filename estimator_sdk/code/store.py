"""Code bundles in a store: each under the hash of its bytes, so it is uploaded once and fetched once."""

from __future__ import annotations

import os
import re
from pathlib import Path

from estimator_container.contract.names import SUBMIT_DIRECTORY

from ..errors import BackendError, InvalidArgument
from ..values import uris
from ..values.debugging import debug
from ..values.home import bundles_folder, secured, writing

_ADDRESSED = re.compile(r"[0-9a-f]{64}\.tar\.gz")


def uri_of(bundle: Path, location: str) -> str:
    """The URI of a bundle below `code_location`."""
    return f"{location.rstrip('/')}/{bundle.name}"


def resolve(given: str | None) -> tuple[str | None, str | None]:
    """Where the code of a job description is on this machine, and where it is to be kept besides.

    What is in a store, and not here under the same hash, is fetched. Raises InvalidArgument where that fails.
    """
    if given is None or "://" not in given:
        return given, None
    name = given.rpartition("/")[2]
    here = bundles_folder() / name
    if _ADDRESSED.fullmatch(name) and here.exists():
        return str(here), given
    if given.startswith("file://"):
        return uris.checked(SUBMIT_DIRECTORY, given).removeprefix("file://"), None
    return str(_fetch(given)), None


def here(given: str) -> Path | None:
    """Where the code of a job description is on this machine, without a fetch; None for what is elsewhere alone."""
    if "://" not in given:
        return Path(given)
    if given.startswith("file://"):
        return Path(given.removeprefix("file://"))
    name = given.rpartition("/")[2]
    return bundles_folder() / name if _ADDRESSED.fullmatch(name) else None


def upload(bundle: str | None, uri: str | None) -> None:
    """Put a bundle where it is to be kept, unless it is there. Raises BackendError, with nothing started.

    Does nothing without a bundle, or without a place for it.
    """
    if bundle is None or uri is None:
        return
    from estimator_container.storage import StorageError, open_store

    folder, _, name = uri.rpartition("/")
    try:
        store = open_store(folder)
        if store.head(name) is None:  # whoever uploads at the same moment has the same bytes
            store.upload(bundle, name)
            debug("uploaded the code to %s", uri)
    except StorageError as error:
        raise BackendError(f"the code could not be uploaded to {uri}, so nothing was started: {error}") from None


@writing("the code bundle")
def _fetch(uri: str) -> Path:
    from estimator_container.storage import StorageError, open_store

    folder, _, name = uri.rpartition("/")
    bundles = secured(bundles_folder())
    draft = bundles / f".{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        digest = open_store(folder).download(name, str(draft))
        place = bundles / f"{digest.sha256}.tar.gz"
        draft.chmod(0o600)
        draft.replace(place)
    except StorageError as error:
        raise InvalidArgument(
            SUBMIT_DIRECTORY, f"{SUBMIT_DIRECTORY} is {uri}, which cannot be fetched: {error}"
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return place
