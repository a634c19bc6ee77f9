"""The port: what every store can do, with the same meaning on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Callable, Protocol

Progress = Callable[[int, int], None]
"""Called with the bytes and the objects done so far, from a thread of the transfer; what it raises ends that."""


@dataclass(frozen=True)
class Object:
    """What a listing says of an object."""

    key: str
    """Relative to the root of the store."""
    size: int
    """In bytes."""
    etag: str
    """Changes whenever the object is written; opaque. Empty for any version."""


@dataclass(frozen=True)
class Digest:
    """What was transferred, as it passed by."""

    size: int
    """In bytes."""
    sha256: str
    """In hexadecimal."""


class Store(Protocol):
    """A tree of objects under one root. All methods may be called from several threads at once.

    An s3 store is of the process that opened it: one that is forked after that can use none, and says so. Besides what
    is said below, any method can raise AccessDenied, BadCredentials, NoSuchBucket, StoreUnavailable, and
    InvalidLocation for a key.
    """

    uri: str
    """The root, as it is named in errors."""

    def list(self, prefix: str = "") -> Iterator[Object]:
        """The objects whose key starts with `prefix`, letter by letter as in S3 (`a` finds `a`, `a/b` and `ab`).

        In the order of their keys' UTF-8 bytes, fetched page by page as the iterator is consumed. A root that is not
        there has no objects; a bucket that is not there is an error. Folder markers (`a/`) are not objects, and nor is
        what is neither a file nor a folder; a link that leads to nothing is an error, and so is a key that no file can
        have as its path: without them the listing would not be whole.
        """

    def head(self, key: str) -> Object | None:
        """The object with exactly this key, if there is one."""

    def read(self, key: str, range: tuple[int, int] | None = None) -> bytes:
        """All bytes, or those from `range[0]` up to, not including, `range[1]`; fewer where the object ends before.

        For small objects: all is in memory. Raises NotFound.
        """

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """Put a small object, all or nothing, and return its etag; it is durable when this returns.

        With `if_absent` only where no object has the key: else Conflict, and of any number of writers exactly one
        succeeds. Where the answer to a write was lost and the retry finds the very same bytes, that write has
        succeeded.
        Raises Unsupported where the server does not hold the condition, which is found out by trying, once, with a
        small object of our own.
        """

    def download(self, key: str | Object, path: str) -> Digest:
        """Put the bytes of an object at `path`, which appears whole or not at all; folders are made.

        Given an Object, that very version: SourceChanged where it has been overwritten since. Raises NotFound, NoSpace.
        """

    def upload(self, path: str, key: str) -> Digest:
        """Put a file as an object, all or nothing; it is durable when this returns.

        Raises SourceChanged where the file's size, time or identity changed meanwhile; nothing is published then.
        """

    def download_many(
        self, items: Iterable[tuple[str | Object, str]], *, progress: Progress | None = None
    ) -> Sequence[Digest]:
        """`download` of each (key, path), many at once; the digests are in the order of the items.

        The items are consumed as they are needed, so a listing may be passed on as it comes. The first error ends it
        all and is raised; what had arrived by then stays, whole.
        """

    def upload_many(self, items: Iterable[tuple[str, str]]) -> Sequence[Digest]:
        """`upload` of each (path, key), many at once, on the terms of `download_many`."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; that one is not there is no error."""

    def remove_unfinished(self, folder: str) -> None:
        """Remove what writers that were killed have left in a folder of keys (`a/`), and below it.

        In a bucket there is nothing: what is left of uploads there is no object, and a lifecycle rule can remove it.
        """
