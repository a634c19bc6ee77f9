"""URIs of stores and keys in them: what is allowed, checked once for every kind of store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .errors import InvalidLocation

OWN_PREFIX = ".estimator-"
"""Names that start so are the port's own (unfinished files, probes): no key has one, and no listing shows one."""

MAX_KEY_BYTES = 1024  # Amazon S3, "Object key naming guidelines"
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Location:
    """A parsed URI."""

    scheme: str
    """`s3` or `file`."""
    bucket: str
    """Empty for a file URI."""
    root: str
    """For s3 the prefix without slashes at its ends, for a file URI the absolute path of the folder."""


def parse(uri: str) -> Location:
    """Raises InvalidLocation with what to write instead."""
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme not in ("s3", "file"):
        raise InvalidLocation(f"{uri!r} is not the URI of a store: write 's3://bucket/prefix' or 'file:///folder'")
    if scheme == "file":
        # What follows is a plain path, as in SageMaker's local mode; nothing in it is unquoted.
        if not rest.startswith("/"):
            raise InvalidLocation(f"{uri!r} names no absolute folder: write 'file:///folder'")
        return Location("file", "", os.path.normpath("/" + rest.lstrip("/")))
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise InvalidLocation(f"{uri!r} names no bucket: write 's3://bucket/prefix'")
    root = prefix.strip("/")
    if root:
        check_key(root)
    return Location("s3", bucket, root)


def check_key(key: str) -> str:
    """`key` itself. Raises InvalidLocation for one that not every store can hold, or that would leave its root."""
    reason = fault(key)
    if reason:
        raise InvalidLocation(f"the key {key!r} {reason}: use names separated by single slashes, such as 'a/b.txt'")
    return key


def fault(key: str) -> str | None:
    """Why not every store can hold that key, as the rest of a sentence that begins with it; None for a good one."""
    names = key.split("/")
    if not key:
        return "is empty"
    if "" in names:
        return "starts or ends with a slash or has two in a row"
    if "." in names or ".." in names:
        return "has '.' or '..' as a name"
    if _CONTROL.search(key):
        return "has a control character"
    if any(name.startswith(OWN_PREFIX) for name in names):
        return f"has a name that starts with {OWN_PREFIX!r}, which the store keeps for itself"
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        return "is not text that UTF-8 can encode"
    return f"is {length} bytes long, more than {MAX_KEY_BYTES}" if length > MAX_KEY_BYTES else None
