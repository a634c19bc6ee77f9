"""`estimator checkpoints ls|verify|pull`: what is kept of a job's checkpoints."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import BackendError, InvalidArgument
from ....values.naming import size, suggestion
from ... import answer, job_argument
from ...parser import Parser
from ...reports.progress_bar import Bar

if TYPE_CHECKING:
    from estimator_container.agents.checkpoints.format import Manifest
    from estimator_container.storage import Store


def add(parser: Parser) -> None:
    parser.add_argument(
        "action",
        choices=["ls", "verify", "pull"],
        help="list the snapshots; fetch each and verify its checksums; download one into a folder",
    )
    job_argument.add(parser)
    parser.add_argument("--uri", metavar="URI", help="where the checkpoints are, instead of JOB")
    parser.add_argument("--snapshot", metavar="NAME", help="one that ls lists (for pull default: the newest complete)")
    parser.add_argument("--to", metavar="DIR", help="where pull puts the files: a new or empty folder")


def run(arguments: Namespace) -> int:
    from estimator_container.storage import InvalidLocation, StorageError, open_store

    _check(arguments)
    uri = arguments.uri or _uri_of(arguments)
    try:
        store = open_store(uri)
        return {"ls": _list, "verify": _verify, "pull": _pull}[arguments.action](store, arguments)
    except InvalidLocation as error:
        raise InvalidArgument("uri", f"--uri {uri!r}: {error}") from None
    except StorageError as error:
        raise BackendError(f"cannot read the checkpoints below {uri}: {error}") from None


def _check(arguments: Namespace) -> None:
    if arguments.uri is not None and arguments.job is not None:
        raise InvalidArgument("uri", "--uri replaces JOB; give only one of them")
    if arguments.action != "pull":
        if arguments.to is not None:
            raise InvalidArgument("to", "--to is for pull, the only action that writes files; leave it out")
        return
    if arguments.to is None:
        raise InvalidArgument("to", "pull needs --to DIR, a new or empty folder")
    folder = Path(arguments.to)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument("to", f"--to {arguments.to!r} is not an empty folder; name a new one")


def _uri_of(arguments: Namespace) -> str:
    job = job_argument.find(arguments)
    uri: str | None = (job.request.get("CheckpointConfig") or {}).get("S3Uri")
    if uri is None:
        raise InvalidArgument("job", f"the job {job.name} keeps no checkpoints; name another, or a location with --uri")
    return uri


def _list(store: Store, arguments: Namespace) -> int:
    found = _snapshots(store, arguments)
    rows = [["SNAPSHOT", "FILES", "SIZE", "CREATED", "JOB"]]
    for name, manifest in found.items():
        if isinstance(manifest, str):
            rows.append([name, "-", "-", "-", f"damaged: {manifest}"])
            continue
        created = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(manifest.created))
        rows.append([name, str(len(manifest.files)), size(manifest.size), created, manifest.job])
    answer.show(arguments, [_document(name, each) for name, each in found.items()], answer.table(rows))
    return 0


def _verify(store: Store, arguments: Namespace) -> int:
    """By the code that restores them, into a folder that is thrown away; 1 where one is not whole."""
    import tempfile

    from estimator_container.agents.checkpoints.format import Damaged
    from estimator_container.agents.checkpoints.restore import fetch

    found: dict[str, str] = {}
    for name, manifest in _snapshots(store, arguments).items():
        if isinstance(manifest, str):
            found[name] = manifest
            continue
        try:
            with tempfile.TemporaryDirectory() as folder, Bar(f"verifying {name}", manifest.size) as bar:
                fetch(store, manifest, f"{folder}/snapshot", bar)
            found[name] = ""
        except Damaged as error:
            found[name] = str(error)
    document = [{"snapshot": name, "is_whole": not fault, "fault": fault or None} for name, fault in found.items()]
    rows = [[name, f"damaged: {fault}" if fault else "whole"] for name, fault in found.items()]
    answer.show(arguments, document, answer.table(rows) if rows else [f"{store.uri} has no snapshot"])
    return 1 if any(found.values()) else 0


def _pull(store: Store, arguments: Namespace) -> int:
    from estimator_container.agents.checkpoints.format import NOTHING, Damaged
    from estimator_container.agents.checkpoints.restore import fetch, restore

    if arguments.snapshot is None:
        with Bar(f"pulling {store.uri}") as bar:
            restored = restore(store, arguments.to, bar)
        if restored.base == NOTHING:
            raise BackendError(f"{store.uri} has no checkpoints, so nothing was pulled")
        name = restored.base
    else:
        ((name, manifest),) = _snapshots(store, arguments).items()
        try:
            if isinstance(manifest, str):
                raise Damaged(manifest)
            with Bar(f"pulling {name}", manifest.size) as bar:
                fetch(store, manifest, arguments.to, bar)
        except Damaged as error:
            raise BackendError(f"the snapshot {name} is not complete: {error}; pull another one") from None
    answer.show(arguments, {"snapshot": name, "folder": arguments.to}, [f"{arguments.to} is {name}"])
    return 0


def _snapshots(store: Store, arguments: Namespace) -> dict[str, Manifest | str]:
    """The snapshots that can be restored, the best first, or the one that is named; of a damaged one its fault."""
    from estimator_container.agents.checkpoints import restore
    from estimator_container.agents.checkpoints.format import Damaged

    found: dict[str, Manifest | str] = {}
    names = restore.snapshots(store)
    known = [str(name) for name in names]
    if arguments.snapshot is not None and arguments.snapshot not in known:
        what = f"--snapshot {arguments.snapshot!r} is not in {store.uri}"
        raise InvalidArgument("snapshot", f"{what}; {suggestion(arguments.snapshot, known)}")
    for name in names:
        if arguments.snapshot in (None, str(name)):
            try:
                found[str(name)] = restore.read_manifest(store, name)
            except Damaged as error:
                found[str(name)] = str(error)
    return found


def _document(name: str, manifest: Manifest | str) -> dict[str, object]:
    if isinstance(manifest, str):
        return {"snapshot": name, "fault": manifest}
    return {
        "snapshot": name,
        "fault": None,
        "job": manifest.job,
        "created": manifest.created,
        "bytes": manifest.size,
        "files": [file.path for file in manifest.files],
    }
