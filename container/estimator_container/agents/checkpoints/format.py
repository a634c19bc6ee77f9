"""What lies in the store: claims, snapshots and their data, below one name that is ours.

    .estimator/attempts/000007.json              who writes, from which snapshot it began
    .estimator/snapshots/000007-00000012.json    a manifest: the files of one moment, with sizes and checksums
    .estimator/data/000007/00000042              the bytes of a file, or of several small ones, never written twice

Whatever else is under the URI is a plain tree of files, such as SageMaker leaves.
"""

from __future__ import annotations

import functools
import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...storage import StorageError

FORMAT = 2
_KNOWN = (1, FORMAT)  # in the first, every file had an object of its own
ROOT = ".estimator/"
CLAIMS = f"{ROOT}attempts/"
SNAPSHOTS = f"{ROOT}snapshots/"
DATA = f"{ROOT}data/"
PLAIN = "plain"
NOTHING = "nothing"
_NAME = re.compile(r"([0-9]{6,})-([0-9]{8,})", re.ASCII)
_CLAIM = re.compile(rf"{re.escape(CLAIMS)}([0-9]{{6,}})\.json", re.ASCII)
_WRONG = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Damaged(Exception):
    """Something in the store is not what was written there."""


class UnknownFormat(StorageError):
    """A manifest that is whole, but not for this toolkit: no reason to go back to an older snapshot."""


@dataclass(frozen=True, order=True)
class Name:
    """A snapshot's name; the later of two is the greater."""

    attempt: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.attempt:06d}-{self.sequence:08d}"

    @property
    def key(self) -> str:
        """The key of the snapshot's manifest, relative to the URI."""
        return f"{SNAPSHOTS}{self}.json"

    @classmethod
    def parse(cls, text: str) -> Name:
        """The way back from `str`. Raises Damaged."""
        match = _NAME.fullmatch(text)
        name = cls(int(match[1]), int(match[2])) if match else None
        if name is None or str(name) != text:
            raise Damaged(f"{text!r} is not the name of a snapshot")
        return name

    @classmethod
    def of_key(cls, key: str) -> Name:
        """The snapshot of a manifest's key. Raises Damaged for any other key."""
        if not (key.startswith(SNAPSHOTS) and key.endswith(".json")):
            raise Damaged(f"{key!r} is not the key of a snapshot")
        return cls.parse(key[len(SNAPSHOTS) : -len(".json")])


@dataclass(frozen=True)
class File:
    """One file of a snapshot."""

    path: str
    """Relative to the folder, with `/`."""
    size: int
    """In bytes."""
    sha256: str
    mode: int
    """Permission bits."""
    mtime_ns: int
    """When it was last written: nanoseconds since 1970."""
    object: str
    """The key of its bytes, relative to the URI."""
    offset: int = 0
    """Where in the object they begin, in bytes."""
    shared: int = 0
    """The size in bytes of an object that other files share; 0 for one that is this file."""


@dataclass(frozen=True)
class Manifest:
    """One snapshot: what the folder held at one moment."""

    name: Name
    job: str
    created: float
    """Seconds since 1970."""
    files: tuple[File, ...]
    folders: tuple[str, ...] = ()
    """All folders, so that empty ones are there too."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links: path and target."""
    folder_modes: Mapping[str, int] = field(default_factory=dict)
    """Folder -> permission bits; a toolkit that did not keep them has left none."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @functools.cached_property
    def paths(self) -> frozenset[str]:
        """Those of its files, which every look at the folder is held against."""
        return frozenset(file.path for file in self.files)

    @property
    def content(self) -> str:
        """A checksum of what it holds, whatever it is called: two snapshots with the same bytes have the same."""
        return _checksum({"files": [[file.path, file.sha256] for file in self.files], "links": self.links})

    def to_bytes(self) -> bytes:
        """The manifest as canonical JSON, with its checksum."""
        document = {
            "format": FORMAT,
            "attempt": self.name.attempt,
            "sequence": self.name.sequence,
            "job": self.job,
            "created": self.created,
            "files": [asdict(file) for file in self.files],
            "folders": list(self.folders),
            "folder_modes": dict(self.folder_modes),
            "links": [list(link) for link in self.links],
        }
        return _canonical({**document, "sha256": _checksum(document)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """The way back. Raises Damaged for anything that `to_bytes` did not make, UnknownFormat."""
        try:
            document = json.loads(data)
            if _canonical(document) != data or document.pop("sha256") != _checksum(document):
                raise Damaged("its checksum is wrong")
            if document["format"] not in _KNOWN:
                raise UnknownFormat(
                    f"a snapshot of the job {document['job']} has format {document['format']}, but this toolkit knows "
                    f"formats up to {FORMAT}: use the toolkit that wrote it, or a newer one"
                )
            manifest = cls(
                Name(document["attempt"], document["sequence"]),
                document["job"],
                document["created"],
                tuple(File(**file) for file in document["files"]),
                tuple(document["folders"]),
                tuple((path, target) for path, target in document["links"]),
                document.get("folder_modes", {}),
            )
            _check_numbers(manifest)
            _check_paths(manifest)
        except _WRONG as error:
            raise Damaged(f"it is not a valid manifest: {error}") from None
        return manifest


@dataclass(frozen=True)
class Claim:
    """An attempt's word that it writes from now on, so that no earlier one may."""

    attempt: int
    job: str
    started: float
    """Seconds since 1970."""
    base: str | None = None
    """The snapshot that it began with, `plain` for a plain tree, `nothing`; None before it has chosen."""

    @property
    def key(self) -> str:
        """The key of the claim, relative to the URI."""
        return claim_key(self.attempt)

    def to_bytes(self) -> bytes:
        """The claim as canonical JSON."""
        return _canonical({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Claim:
        """The way back. Raises Damaged."""
        try:
            document = json.loads(data)
            document.pop("format")
            claim = cls(**document)
            if claim.base not in (None, PLAIN, NOTHING):
                Name.parse(claim.base)
        except _WRONG as error:
            raise Damaged(f"it is not a valid claim: {error}") from None
        return claim


def claim_key(attempt: int) -> str:
    """The key of an attempt's claim, relative to the URI."""
    return f"{CLAIMS}{attempt:06d}.json"


def attempt_of(key: str) -> int:
    """The attempt of a claim's key. Raises Damaged for any other key."""
    match = _CLAIM.fullmatch(key)
    if match is None:
        raise Damaged(f"{key!r} is not the key of a claim")
    return int(match[1])


def newest_first(claims: Sequence[Claim], names: Iterable[Name]) -> list[Name]:
    """The snapshots that may be restored, the best first.

    What an attempt published after a later one had chosen its base is left out: by then it had been declared dead, and
    training went on without it.
    """
    bases = {claim.attempt: claim.base for claim in claims}
    allowed: list[Name] = []
    limit: Name | None = None
    remaining = sorted(names, reverse=True)
    for attempt in sorted({*bases, *(name.attempt for name in remaining)}, reverse=True):
        own = (name for name in remaining if name.attempt == attempt)
        allowed += [name for name in own if limit is None or name <= limit]
        base = bases.get(attempt)
        if base is not None:
            began_with = Name(0, 0) if base in (PLAIN, NOTHING) else Name.parse(base)
            limit = began_with if limit is None else min(limit, began_with)
    return allowed


def check_path(path: str) -> None:
    """Raises Damaged for a path that no folder holds, or that would lead out of it."""
    parts = path.split("/")
    if posixpath.normpath(path) != path or parts[0] in ("", ".", "..") or not _is_name(path):
        raise Damaged(f"it holds the path {path!r}, which would lead out of the folder")


def _is_name(text: str) -> bool:
    """Whether the system can be told it. Raises UnicodeEncodeError for half a character that stands for no byte."""
    return bool(text) and "\0" not in text and bool(text.encode("utf-8", "surrogateescape"))


def _check_paths(manifest: Manifest) -> None:
    links, files = {path for path, _ in manifest.links}, {file.path for file in manifest.files}
    paths = [*(file.path for file in manifest.files), *manifest.folders, *(path for path, _ in manifest.links)]
    for path in paths:
        check_path(path)
        parts = path.split("/")
        for above in ("/".join(parts[:count]) for count in range(1, len(parts))):
            if above in links or above in files:
                raise Damaged(f"it holds the path {path!r}, which would lead through a link or a file")
    if len(set(paths)) < len(paths):
        raise Damaged("it holds a path twice")
    if not all(_is_name(target) for _, target in manifest.links):
        raise Damaged("it holds a link to nothing")
    if not manifest.folder_modes.keys() <= set(manifest.folders):
        raise Damaged("it holds the mode of a folder that it does not contain")


def _check_numbers(manifest: Manifest) -> None:
    whole = [number for file in manifest.files for number in (file.size, file.mode, file.offset, file.shared)]
    times = [file.mtime_ns for file in manifest.files]
    for number in (*whole, *times, *manifest.folder_modes.values()):
        if type(number) is not int or not -(1 << 63) <= number < 1 << 63:
            raise Damaged(f"it holds {number!r} instead of a whole number")
    if any(number < 0 for number in (*whole, *manifest.folder_modes.values())):
        raise Damaged("it holds a size or a mode below 0")


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical(document)).hexdigest()
