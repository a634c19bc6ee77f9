"""Put back what the newest whole snapshot holds; or the plain tree, where there is no snapshot."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...storage import Conflict, Digest, NotFound, Progress, SourceChanged, StorageError, Store
from ...storage.tree import KeyTree
from ..background import BackgroundCall
from ..watching.state import FOLDER_PERMISSIONS, PERMISSIONS
from . import packs
from .format import (
    CLAIMS,
    NOTHING,
    PLAIN,
    ROOT,
    SNAPSHOTS,
    Claim,
    Damaged,
    Manifest,
    Name,
    attempt_of,
    claim_key,
    newest_first,
)
from .reuse import take_over

T = TypeVar("T")


@dataclass(frozen=True)
class Restored:
    """What came out of a restore."""

    base: str
    """The snapshot's name, `plain`, or `nothing`."""
    manifest: Manifest | None
    files: int
    size: int
    """Bytes of all files."""
    passed_over: tuple[str, ...] = ()
    """Newer snapshots that were not whole, each with what was wrong."""


class NothingWhole(StorageError):
    """There are snapshots, and none of them verifies."""


def claim(store: Store, job: str) -> Claim:
    """Become the one who may publish: every attempt before this one is too late from now on. Raises StorageError."""
    attempts = BackgroundCall(lambda: list(_ours(store, CLAIMS, attempt_of)))
    names = [name.attempt for name in _ours(store, SNAPSHOTS, Name.of_key)]
    number = max([*attempts.result(), *names], default=0)
    while True:
        number += 1
        mine = Claim(number, job, time.time())
        try:
            store.write(mine.key, mine.to_bytes(), if_absent=True)
        except Conflict:
            continue  # another attempt was quicker
        return mine


def is_overtaken(store: Store, attempt: int) -> bool:
    """Whether a later attempt has claimed the folder."""
    return any(number > attempt for number in _ours(store, CLAIMS, attempt_of))


def snapshots(store: Store) -> list[Name]:
    """The snapshots that may be restored, the best first. Raises StorageError."""
    claims = BackgroundCall(lambda: _read_claims(store))
    names = list(_ours(store, SNAPSHOTS, Name.of_key))
    return newest_first(claims.result(), names)


def _manifests(store: Store) -> Iterator[tuple[Name, Manifest | Damaged]]:
    """The same with what each holds, or what is wrong with it. Raises StorageError.

    The newest of all is most often the best: it is read before the claims say so.
    """
    claims = BackgroundCall(lambda: _read_claims(store))
    names = list(_ours(store, SNAPSHOTS, Name.of_key))
    newest = max(names, default=Name(0, 0))
    ahead = BackgroundCall(lambda: read_manifest(store, newest)) if names else None
    for name in newest_first(claims.result(), names):
        try:
            yield name, ahead.result() if ahead is not None and name == newest else read_manifest(store, name)
        except Damaged as error:
            yield name, error


def _ours(store: Store, prefix: str, parse: Callable[[str], T]) -> Iterator[T]:
    """What the keys below a prefix stand for; what somebody else has put there stands for nothing."""
    for each in store.list(prefix):
        with contextlib.suppress(Damaged):
            yield parse(each.key)


def _read_claims(store: Store) -> list[Claim]:
    return [_read_claim(store, number) for number in _ours(store, CLAIMS, attempt_of)]


def _read_claim(store: Store, attempt: int) -> Claim:
    """One that is gone (a later attempt has published, and removed it) or damaged sets no limit to others."""
    unknown = Claim(attempt, "", 0.0)
    try:
        claim = Claim.from_bytes(store.read(claim_key(attempt)))
    except (NotFound, Damaged):
        return unknown
    return claim if claim.attempt == attempt else unknown


def read_manifest(store: Store, name: Name) -> Manifest:
    """Raises Damaged when it is not there or not what was written, StorageError when the store fails."""
    try:
        manifest = Manifest.from_bytes(store.read(name.key))
    except NotFound:
        raise Damaged("its manifest is missing") from None
    if manifest.name != name:
        raise Damaged(f"its manifest says that it is {manifest.name}")
    return manifest


def newest_whole_manifest(store: Store) -> Manifest | None:
    """The best manifest that can be read, without a look at its data. Raises StorageError."""
    return next((manifest for _, manifest in _manifests(store) if isinstance(manifest, Manifest)), None)


def restore(store: Store, folder: str, progress: Progress | None = None, *, at_hand: bool = False) -> Restored:
    """Fill the folder with the newest snapshot that verifies, byte by byte; older ones only where newer ones do not.

    What is in the folder goes away. The folder has either all of it or nothing. Raises NothingWhole where there are
    snapshots and none verifies, and StorageError where the store fails: an older snapshot is no answer to a store that
    is away. `at_hand` says that the folder is what an earlier attempt has left, so what it has of the snapshot is not
    fetched again.
    """
    passed_over: list[str] = []
    for name, manifest in _manifests(store):
        try:
            if isinstance(manifest, Damaged):
                raise manifest
            fetch(store, manifest, folder, progress, at_hand=at_hand)
        except Damaged as error:
            passed_over.append(f"{name}: {error}")
            continue
        return Restored(str(name), manifest, len(manifest.files), manifest.size, tuple(passed_over))
    if passed_over:
        raise NothingWhole(
            f"{store.uri} has {len(passed_over)} snapshots, but none is complete ({'; '.join(passed_over[:3])}); name "
            "another checkpoint_s3_uri to start afresh, or repair the store"
        )
    return _restore_plain(store, folder, progress, at_hand=at_hand)


def fetch(
    store: Store, manifest: Manifest, folder: str, progress: Progress | None = None, *, at_hand: bool = False
) -> None:
    """Fill the folder with one snapshot. What is in it goes away; it has either all of the snapshot or what it had.

    With `at_hand`, files that are there already, byte for byte, are not fetched.

    Raises Damaged for a snapshot whose files are not all there, byte by byte, and StorageError where the store fails.
    """
    with _staging(folder) as staging:
        for path in manifest.folders:
            os.makedirs(os.path.join(staging, path), exist_ok=True)
        digests = take_over(folder, manifest.files, staging) if at_hand else {}
        missing = [file for file in manifest.files if file.path not in digests]
        try:
            digests.update(packs.download(store, missing, staging, progress))
        except NotFound as error:
            raise Damaged(f"the bytes of a file are missing: {error}") from None
        except SourceChanged as error:
            raise Damaged(f"the bytes of a file are not those that were written: {error}") from None
        for file in manifest.files:
            if digests[file.path] != Digest(file.size, file.sha256):
                raise Damaged(f"{file.path} does not have the bytes that were written")
            place = os.path.join(staging, file.path)
            # Whoever wrote the snapshot lends no program the rights of who restores it.
            os.chmod(place, file.mode & PERMISSIONS)
            os.utime(place, ns=(file.mtime_ns, file.mtime_ns))
        for path, target in manifest.links:
            os.symlink(target, os.path.join(staging, path))
        # Closed to others before they can be seen, and to their owner when nothing has to be moved any more.
        _set_modes(staging, manifest, at_least=stat.S_IRWXU)
        _move_into(staging, folder)
        _set_modes(folder, manifest)


def _set_modes(root: str, manifest: Manifest, at_least: int = 0) -> None:
    """Give each folder its mode, and what is in one before itself."""
    for path in sorted(manifest.folder_modes, reverse=True):
        os.chmod(os.path.join(root, path), manifest.folder_modes[path] & FOLDER_PERMISSIONS | at_least)


def _restore_plain(store: Store, folder: str, progress: Progress | None, *, at_hand: bool) -> Restored:
    found = [each for each in store.list() if not each.key.startswith(ROOT)]
    if not found:
        if at_hand:
            _empty(folder)  # what was never published does not outlive its attempt
        return Restored(NOTHING, None, 0, 0)
    tree = KeyTree(store.uri)
    paths = [tree.add(each.key) for each in found]
    with _staging(folder) as staging:
        items = [(each, os.path.join(staging, path)) for each, path in zip(found, paths)]
        store.download_many(items, progress=progress)
        _move_into(staging, folder)
    return Restored(PLAIN, None, len(found), sum(each.size for each in found))


@contextlib.contextmanager
def _staging(folder: str) -> Iterator[str]:
    """A folder beside the real one, on the same file system, that nobody else may look into; removed in the end."""
    path = f"{os.path.abspath(folder)}.restoring"
    if os.path.lexists(path):
        _remove(path)
    os.makedirs(path, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _move_into(staging: str, folder: str) -> None:
    _empty(folder)
    for name in os.listdir(staging):
        os.rename(os.path.join(staging, name), os.path.join(folder, name))


def _empty(folder: str) -> None:
    """Take away what a restore that was killed has left; the folder itself may be a mount, and stays."""
    os.makedirs(folder, exist_ok=True)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)


def _remove(path: str) -> None:
    """A folder with all that is in it, also where its owner has locked it."""
    try:
        shutil.rmtree(path)
    except PermissionError:
        _unlock(path)
        shutil.rmtree(path)


def _unlock(path: str) -> None:
    os.chmod(path, stat.S_IRWXU)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _unlock(entry.path)


def copy(source: str, folders: Sequence[str]) -> None:
    """The same for the job's other hosts on this machine: what has been fetched once is not fetched again."""
    for folder in folders:
        _empty(folder)
        shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
