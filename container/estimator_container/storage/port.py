"""The port: what every store can do, with the same meaning on each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Callable, Union

Progress = Callable[[int, int], None]
"""Called with the bytes and the objects done so far, from a thread of the transfer; what it raises ends that."""

PathOrFile = Union[str, IO[bytes]]
"""A path, or a file opened in binary mode, which is read whole from its start whatever its position is."""


@dataclass(frozen=True)
class Object:
    """What a listing says of an object."""

    key: str
    """Relative to the root of the store."""
    size: int
    """In bytes."""
    etag: str
    """Changes whenever the object is written; opaque, and good for `if_match`. Empty for any version."""


@dataclass(frozen=True)
class Digest:
    """What was transferred, as it passed by."""

    size: int
    """In bytes."""
    sha256: str
    """In hexadecimal."""


class Store(ABC):
    """A tree of objects under one root. All methods may be called from several threads at once.

    An s3 store is of the process that opened it: one that is forked after that can use none, and says so. Besides what
    is said below, any method can raise AccessDenied, BadCredentials, NoSuchBucket, StoreUnavailable, and
    InvalidLocation for a key.
    """

    uri: str
    """The root, as it is named in errors."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Object]:
        """The objects whose key starts with `prefix`, letter by letter as in S3 (`a` finds `a`, `a/b` and `ab`).

        In the order of their keys' UTF-8 bytes, fetched page by page as the iterator is consumed. A root that is not
        there has no objects; a bucket that is not there is an error. Folder markers (`a/`) are not objects, and nor is
        what is neither a file nor a folder; a link that leads to nothing is an error, and so is a key that no file can
        have as its path: without them the listing would not be whole.
        """

    @abstractmethod
    def head(self, key: str) -> Object | None:
        """The object with exactly this key, if there is one."""

    @abstractmethod
    def read(self, key: str, range: tuple[int, int] | None = None) -> bytes:
        """All bytes, or those from `range[0]` up to, not including, `range[1]`; fewer where the object ends before.

        For small objects: all is in memory. Raises NotFound.
        """

    @abstractmethod
    def write(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        """Put a small object, all or nothing, and return its etag; it is durable when this returns.

        With `if_absent` only where no object has the key, with `if_match` only over the object with that etag: else
        Conflict. Of any number of writers with the same condition exactly one succeeds. Where the answer to a write
        was lost and the retry finds the condition broken by the very same bytes, that write has succeeded.
        Raises Unsupported where the server does not hold the condition, which is found out by trying, once, with a
        small object of our own.
        """

    @abstractmethod
    def download(self, key: str | Object, path: str, *, durable: bool = False) -> Digest:
        """Put the bytes of an object at `path`, which appears whole or not at all; folders are made.

        Given an Object, that very version: SourceChanged where it has been overwritten since. With `durable` it is on
        the disk when this returns. Raises NotFound, NoSpace.
        """

    @abstractmethod
    def upload(self, source: PathOrFile, key: str) -> Digest:
        """Put a file as an object, all or nothing; it is durable when this returns.

        Raises SourceChanged where the file's size, time or identity changed meanwhile; nothing is published then.
        """

    @abstractmethod
    def download_many(
        self, items: Iterable[tuple[str | Object, str]], *, progress: Progress | None = None
    ) -> Sequence[Digest]:
        """`download` of each (key, path), many at once; the digests are in the order of the items.

        The items are consumed as they are needed, so a listing may be passed on as it comes. The first error ends it
        all and is raised; what had arrived by then stays, whole.
        """

    @abstractmethod
    def upload_many(self, items: Iterable[tuple[str, str]], *, progress: Progress | None = None) -> Sequence[Digest]:
        """`upload` of each (path, key), many at once, on the terms of `download_many`."""

    @abstractmethod
    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; that one is not there is no error."""


def check_conditions(if_absent: bool, if_match: str | None) -> None:
    """Raises ValueError for two conditions, of which no object can hold both."""
    if if_absent and if_match is not None:
        raise ValueError("an absent object has no etag: give if_absent or if_match, not both")
