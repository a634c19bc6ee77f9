"""Where objects are kept: one port over `s3://bucket/prefix` and `file:///folder`.

Both sides of a job use it, which is why it lives here. Importing it loads nothing but the names below; `obstore`, the
one dependency, is imported when an s3 store is opened (`pip install 'estimator-container[s3]'`).
"""

from __future__ import annotations

from .errors import AccessDenied as AccessDenied
from .errors import BadCredentials as BadCredentials
from .errors import Conflict as Conflict
from .errors import InvalidLocation as InvalidLocation
from .errors import MissingDependency as MissingDependency
from .errors import NoCredentials as NoCredentials
from .errors import NoSpace as NoSpace
from .errors import NoSuchBucket as NoSuchBucket
from .errors import NotFound as NotFound
from .errors import SourceChanged as SourceChanged
from .errors import StorageError as StorageError
from .errors import StoreUnavailable as StoreUnavailable
from .errors import Unsupported as Unsupported
from .location import parse
from .port import Digest as Digest
from .port import Object as Object
from .port import Progress as Progress
from .port import Store as Store

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
