"""What a store raises: each error is one sentence that says what, where, why and what to do, and no secret."""

from __future__ import annotations


class StorageError(Exception):
    """The base of all errors of a store; itself raised for what has no name of its own below."""


class InvalidLocation(StorageError, ValueError):
    """A URI or a key that names nothing that a store could hold."""


class MissingDependency(StorageError):
    """The package that talks to this kind of store is not installed."""


class NotFound(StorageError):
    """No object has that key."""


class NoSuchBucket(StorageError):
    """The bucket itself is not there."""


class AccessDenied(StorageError):
    """The credentials are good, but may not do this."""


class BadCredentials(StorageError):
    """The store refuses the credentials: unknown, expired, or signed with a wrong secret or clock."""


class NoCredentials(StorageError):
    """The standard AWS chain has no credentials."""


class Conflict(StorageError):
    """A conditional write whose condition does not hold: nothing was written."""


class Unsupported(StorageError):
    """The server was tried, and does not hold the condition that was asked for; nothing was written."""


class SourceChanged(StorageError):
    """What was being read changed under the transfer: nothing was published."""


class StoreUnavailable(StorageError):
    """Faults that ought to pass did not, until the deadline."""


class NoSpace(StorageError):
    """The disk, or a quota on it, is full; no partial file is left."""


def listed_but_missing(where: str) -> NotFound:
    """What is said of an object that a listing has, and that is not found under the key that it has there.

    Clients of S3 take a slash away from the start and the end of a key.
    """
    return NotFound(
        f"{where} is listed but not in the store: it has since been removed, or its key starts or ends with a "
        "slash, which no file's path can; remove that object, or give it another key"
    )
