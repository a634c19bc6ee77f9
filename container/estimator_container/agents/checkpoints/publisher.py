"""Publish states of a folder as snapshots: data first, the manifest last, old ones away after that."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ...storage import NotFound, SourceChanged, StorageError, Store
from ..watching.folder import WatchedFolder
from ..watching.state import PERMISSIONS, FolderState, Stamp
from . import packs
from .appended import copy_log
from .format import CLAIMS, DATA, ROOT, SNAPSHOTS, Claim, Damaged, File, Manifest, Name
from .restore import is_overtaken, read_manifest, snapshots
from .settings import KEPT

_CHUNK = 4 << 20  # bytes


class Overtaken(StorageError):
    """A later attempt has claimed the checkpoints: this one may publish no more."""


@dataclass(frozen=True)
class Published:
    """What a snapshot took."""

    manifest: Manifest
    uploaded_size: int
    """Bytes that had to be sent; the rest was in the store."""


class Publisher:
    """The one attempt that writes."""

    def __init__(self, store: Store, claim: Claim, folder: WatchedFolder, kept: int = KEPT) -> None:
        self._store = store
        self._claim = claim
        self._folder = folder
        self._kept = kept
        self._next_object = 0
        self._sequence = 0
        self._is_outrun = False
        self._known: dict[str, tuple[Stamp, File]] = {}
        self._published: Mapping[str, tuple[Stamp, File]] = {}
        self._last: Manifest | None = None

    @property
    def stamps(self) -> Mapping[str, Stamp]:
        """The files whose bytes are in the store, as they were then, in a snapshot or not yet."""
        return {path: stamp for path, (stamp, _) in self._known.copy().items()}

    @property
    def newest_content(self) -> str:
        """A checksum of what the newest whole snapshot holds; empty where there is none."""
        return self._last.content if self._last is not None else ""

    def begin_with(self, manifest: Manifest | None, base: str, *, in_use: bool = False) -> None:
        """Say in the claim what this attempt began with, and take its files as known. Raises StorageError.

        In a folder that is in use, because this agent takes the place of another, only those that still have the bytes
        of the snapshot.
        """
        begun = Claim(self._claim.attempt, self._claim.job, self._claim.started, base)
        self._store.write(begun.key, begun.to_bytes())
        self._last = manifest
        for file in manifest.files if manifest else ():
            stamp = self._stamp_of_the_same(file, in_use)
            if stamp is not None:
                self._known[file.path] = (stamp, file)
        self._published = self._known.copy()

    def _stamp_of_the_same(self, file: File, in_use: bool) -> Stamp | None:
        place = os.path.join(self._folder.path, file.path)
        try:
            stamp = Stamp.from_status(os.lstat(place))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if (stamp.size, stamp.mtime_ns, stamp.mode) != (file.size, file.mtime_ns, file.mode & PERMISSIONS):
            return None
        return stamp if not in_use or self._has_bytes_of(file, stamp) else None

    def _has_bytes_of(self, file: File, stamp: Stamp) -> bool:
        hasher = hashlib.sha256()
        try:
            with open(os.path.join(self._folder.path, file.path), "rb") as opened:
                while chunk := opened.read(_CHUNK):
                    hasher.update(chunk)
        except OSError:
            return False
        return hasher.hexdigest() == file.sha256 and self._folder.is_as_it_was(file.path, stamp)

    def is_news(self, state: FolderState, logs: Collection[str] = ()) -> bool:
        """Whether a state is worth a snapshot: it holds something new, and nothing that was kept is half written.

        A file that is gone alone is not news: then the snapshot that still has it is the better one. Of `logs` what
        there is will do, and that they have grown alone is not news either.
        """
        if not set(self.waits_for(state)) <= set(logs):
            return False
        return bool(self._news(state)) or (
            self._last is not None and bool(set(state.links.items()) - set(self._last.links))
        )

    def waits_for(self, state: FolderState) -> list[str]:
        """The files that somebody has open for writing and a snapshot may not be without.

        They are in the last one, so that the next would be less, or they had been whole before somebody opened them.
        """
        return sorted(self.kept & state.unsettled | state.reopened)

    @property
    def kept(self) -> frozenset[str]:
        """The files of the last snapshot."""
        return self._last.paths if self._last is not None else frozenset()

    def _kept_files(self) -> tuple[File, ...]:
        return self._last.files if self._last is not None else ()

    def size_of_news(self, state: FolderState) -> int:
        """Bytes of the files that nobody is writing and that are in no snapshot yet."""
        return sum(state.files[path].size for path in self._news(state))

    def publish(self, state: FolderState, logs: Collection[str] = ()) -> Published:
        """Make a snapshot of the state; it is in the store, whole, when this returns.

        Of `logs`, files of the last snapshot that somebody has open, it holds what they hold now, if they begin with
        what they were. Raises SourceChanged when a file is no more what it was in the state, Rewritten for a log that
        is none, Overtaken, StorageError and OSError.
        """
        # Without logs no folder is needed, which a full disk might not have room for.
        with self._scratch("appended") if logs else contextlib.nullcontext("") as scratch:
            copied = self._copy_logs(state, logs, scratch)
            try:
                new = self._upload(state)
            except SourceChanged:
                self._is_outrun = True  # the next time by copies, or it could go on like this for ever
                raise
            self._is_outrun = False
            before = {file.object for file in self._kept_files()}
            appended = {place: file for place, (_, file) in copied.items() if file.object not in before}
            if appended:
                self._store.upload_many((place, file.object) for place, file in appended.items())
        files = [*(self._known[path][1] for path in state.files), *(file for _, file in copied.values())]
        name = Name(self._claim.attempt, self._sequence + 1)
        manifest = Manifest(
            name,
            self._claim.job,
            time.time(),
            tuple(sorted(files, key=lambda file: file.path)),
            tuple(sorted(state.folders)),
            tuple(sorted(state.links.items())),
            state.folders,
        )
        self._sequence += 1
        self._store.write(name.key, manifest.to_bytes(), if_absent=True)
        if is_overtaken(self._store, self._claim.attempt):
            raise Overtaken(
                f"an attempt later than {self._claim.attempt} writes to {self._store.uri}; what this one writes from "
                "now on is not kept"
            )
        self._last = manifest
        self._known = {path: self._known[path] for path in state.files}
        # While somebody has a log open it may be mapped, and then not every change shows in its stamp.
        closed = ((file.path, (stamp, file)) for stamp, file in copied.values())
        self._known.update((path, known) for path, known in closed if self._folder.is_as_it_was(path, known[0]))
        self._published = self._known.copy()
        sent = [*(state.files[path].size for path in new), *(file.size for file in appended.values())]
        return Published(manifest, sum(sent))

    def clean_up(self) -> None:
        """Remove older snapshots, those of attempts that were overtaken, lost data, and any attempt's unfinished files.

        Raises StorageError.
        """
        kept = self._newest()
        names = {manifest.name.key for manifest in kept}
        needed = {file.object for manifest in kept for file in manifest.files}
        # A manifest goes before its data, so that no snapshot is ever seen without them; and before the claims that
        # say which snapshots count. What a later attempt has is its own business.
        self._remove(SNAPSHOTS, names, f"{SNAPSHOTS}{Name(self._claim.attempt + 1, 0)}")
        self._remove(DATA, needed, f"{DATA}{self._claim.attempt + 1:06d}/")
        self._remove(CLAIMS, set(), self._claim.key)
        self._store.remove_unfinished(ROOT)

    def _newest(self) -> list[Manifest]:
        """The newest snapshots whose manifests can be read, as many as are kept."""
        kept = [self._last] if self._last is not None else []
        for name in snapshots(self._store):
            if len(kept) == self._kept:
                break
            if all(name != manifest.name for manifest in kept):
                with contextlib.suppress(Damaged):
                    kept.append(read_manifest(self._store, name))
        return kept

    def _remove(self, prefix: str, kept: set[str], end: str) -> None:
        self._store.delete([each.key for each in self._store.list(prefix) if each.key < end and each.key not in kept])

    def _news(self, state: FolderState) -> list[str]:
        """What is not in the last snapshot: more than what is not in the store, where a publication has failed."""
        return _others(state, self._published)

    @contextlib.contextmanager
    def _originals(self, state: FolderState, paths: list[str]) -> Iterator[list[str]]:
        """The files themselves, which must be at the end what they were."""
        try:
            yield [os.path.join(self._folder.path, path) for path in paths]
        except NotFound as error:
            raise SourceChanged(f"a file was removed before it was published: {error}") from None
        self._check(state, paths)

    @contextlib.contextmanager
    def _copies(self, state: FolderState, paths: list[str]) -> Iterator[list[str]]:
        """Copies beside the folder, for a script that writes its files again before the store has taken them."""
        with self._scratch("staging") as scratch:
            places = [os.path.join(scratch, str(number)) for number in range(len(paths))]
            try:
                for path, place in zip(paths, places):
                    shutil.copyfile(os.path.join(self._folder.path, path), place, follow_symlinks=False)
            except FileNotFoundError as error:
                raise SourceChanged(f"a file was removed before it was published: {error}") from None
            except OSError:
                self._is_outrun = False  # the disk is full, say: the files themselves may be still by now
                raise
            self._check(state, paths)
            yield places

    @contextlib.contextmanager
    def _scratch(self, name: str) -> Iterator[str]:
        """A folder beside the one that is watched, for as long as the block takes."""
        path = f"{self._folder.path}.{name}"
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _copy_logs(self, state: FolderState, logs: Collection[str], scratch: str) -> dict[str, tuple[Stamp, File]]:
        """Copies of what logs hold at one moment at which the rest of the folder is still what it was in the state."""
        kept = {file.path: file for file in self._kept_files()}
        copied: dict[str, tuple[Stamp, File]] = {}
        try:
            for path in sorted(logs):
                place = os.path.join(scratch, str(len(copied)))
                stamp, sha256 = copy_log(self._folder.path, kept[path], place)
                file = replace(kept[path], mode=stamp.mode, mtime_ns=stamp.mtime_ns)
                if stamp.size != file.size:
                    file = File(path, stamp.size, sha256, stamp.mode, stamp.mtime_ns, self._new_key())
                copied[place] = (stamp, file)
        except FileNotFoundError as error:
            raise SourceChanged(f"a log was removed before it was published: {error}") from None
        if copied and not self._folder.is_still(state):
            raise SourceChanged("the folder was changed while a log was copied")
        return copied

    def _new_key(self) -> str:
        """Where bytes are to go, and none have gone before."""
        self._next_object += 1
        return f"{DATA}{self._claim.attempt:06d}/{self._next_object:08d}"

    def _check(self, state: FolderState, paths: list[str]) -> None:
        for path in paths:
            if not self._folder.is_as_it_was(path, state.files[path]):
                raise SourceChanged(f"{path} was written again while it was being published")

    def _upload(self, state: FolderState) -> list[str]:
        """Have the bytes of every file in the store. Returns those that had to be sent."""
        for path in _others(state, self._known):
            # Another owner or one more name leaves the bytes as they are.
            if path in self._known:
                (before, file), now = self._known[path], state.files[path]
                if replace(before, ctime_ns=now.ctime_ns) == now and self._has_bytes_of(file, now):
                    self._known[path] = (now, file)
        paths = _others(state, self._known)
        paths += self._in_wasteful_packs(set(state.files) - set(paths))
        with self._copies(state, paths) if self._is_outrun else self._originals(state, paths) as places:
            sizes = {place: state.files[path].size for path, place in zip(paths, places)}
            sent = packs.upload(self._store, sizes, self._new_key)
        for path, place in zip(paths, places):
            key, offset, shared, digest = sent[place]
            stamp = state.files[path]
            file = File(path, digest.size, digest.sha256, stamp.mode, stamp.mtime_ns, key, offset, shared)
            self._known[path] = (stamp, file)
        return paths

    def _in_wasteful_packs(self, unchanged: Collection[str]) -> list[str]:
        """Files that are sent again, so that what lay beside them need not be kept."""
        wasteful = packs.wasteful(self._known[path][1] for path in unchanged)
        return sorted(path for path in unchanged if self._known[path][1].object in wasteful)


def _others(state: FolderState, known: Mapping[str, tuple[Stamp, File]]) -> list[str]:
    return sorted(path for path, stamp in state.files.items() if path not in known or known[path][0] != stamp)
