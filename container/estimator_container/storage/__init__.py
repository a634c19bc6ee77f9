"""Where objects are kept: one port over `s3://bucket/prefix` and `file:///folder`.

Both sides of a job use it, which is why it lives here. Importing it loads nothing but the names below; `obstore`, the
one dependency, is imported when an s3 store is opened (`pip install 'estimator-container[s3]'`).
"""

from __future__ import annotations

from .errors import (
    AccessDenied,
    BadCredentials,
    Conflict,
    InvalidLocation,
    MissingDependency,
    NoCredentials,
    NoSpace,
    NoSuchBucket,
    NotFound,
    SourceChanged,
    StorageError,
    StoreUnavailable,
    Unsupported,
)
from .location import parse
from .port import Digest, Object, Progress, Store

__all__ = [
    "AccessDenied",
    "BadCredentials",
    "Conflict",
    "Digest",
    "InvalidLocation",
    "MissingDependency",
    "NoCredentials",
    "NoSpace",
    "NoSuchBucket",
    "NotFound",
    "Object",
    "Progress",
    "SourceChanged",
    "StorageError",
    "Store",
    "StoreUnavailable",
    "Unsupported",
    "open_store",
]

RETRY_SECONDS = 60.0  # that a store may be away, where nobody says how long
STALL_SECONDS = 30.0  # that a connection may say nothing; half of the `read_timeout` of botocore


def open_store(uri: str, *, retry_seconds: float = RETRY_SECONDS, stall_seconds: float = STALL_SECONDS) -> Store:
    """The store at `s3://bucket/prefix` or `file:///folder`; its keys are relative to that root.

    Opening sends nothing and makes nothing. `retry_seconds` is how long transient faults are retried, counted from the
    first fault of a row; `stall_seconds` is how long a connection may say nothing before that is a fault. Both are of
    no use to a `file://` store, whose faults are not transient.

    Raises InvalidLocation for a URI that is neither, MissingDependency where `obstore` is not installed, and
    NoCredentials where the standard AWS chain has none.
    """
    location = parse(uri)
    if location.is_folder:
        from .file import LocalStore

        return LocalStore(location.root)
    from .s3.store import open_s3

    return open_s3(location, retry_seconds=retry_seconds, stall_seconds=stall_seconds)
