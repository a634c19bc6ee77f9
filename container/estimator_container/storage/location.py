"""URIs of stores and keys in them: what is allowed, checked once for every kind of store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..contract.names import BUCKET_SCHEMES, FILE_SCHEME
from .errors import InvalidLocation

_OWN_NAME = re.compile(r"\.estimator-(?:[0-9a-f]{16}\.part|probe-[0-9a-f]{16})")

MAX_KEY_BYTES = 1024  # Amazon S3, "Object key naming guidelines"
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Location:
    """A parsed URI."""

    scheme: str
    """`file`, or one of those with a bucket, such as `s3`."""
    bucket: str
    """Empty for a file URI."""
    root: str
    """For a bucket the prefix without slashes at its ends, for a file URI the absolute path of the folder."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and no bucket."""
        return self.scheme == FILE_SCHEME

    @property
    def key_prefix(self) -> str:
        """What its keys begin with in the bucket; nothing in a folder."""
        return "" if self.is_folder or not self.root else f"{self.root}/"


def parse(uri: str) -> Location:
    """Raises InvalidLocation with what to write instead."""
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme not in (*BUCKET_SCHEMES, FILE_SCHEME):
        raise InvalidLocation(f"{uri!r} is not the URI of a store: write 's3://bucket/prefix' or 'file:///folder'")
    if scheme == FILE_SCHEME:
        # What follows is a plain path, as in SageMaker's local mode; nothing in it is unquoted.
        if not rest.startswith("/"):
            raise InvalidLocation(f"{uri!r} names no absolute folder: write 'file:///folder'")
        if "\0" in rest:
            raise InvalidLocation(f"{uri!r} holds a NUL byte, which no path can have: check it")
        return Location(scheme, "", os.path.normpath("/" + rest.lstrip("/")))
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise InvalidLocation(f"{uri!r} names no bucket: write '{scheme}://bucket/prefix'")
    # One slash at the end says that it is a folder; any other is part of the keys, which could not be kept apart.
    root = prefix[:-1] if prefix.endswith("/") else prefix
    if root:
        check_key(root)
    return Location(scheme, bucket, root)


def unfinished_name() -> str:
    """A name for a file that is not whole yet."""
    return f".estimator-{os.urandom(8).hex()}.part"


def probe_name() -> str:
    """A name for an object that is only there to try something out."""
    return f".estimator-probe-{os.urandom(8).hex()}"


def is_unfinished(name: str) -> bool:
    """Whether a name is that of a file that is not whole yet."""
    return is_own(name) and name.endswith(".part")


def is_own(name: str) -> bool:
    """Whether a name is one of the port's own: no key has it, and no listing shows it.

    >>> is_own(unfinished_name()), is_own(probe_name()), is_own(".estimator-notes.txt")
    (True, True, False)
    """
    return name.startswith(".estimator-") and _OWN_NAME.fullmatch(name) is not None


def check_key(key: str) -> str:
    """`key` itself. Raises InvalidLocation for one that not every store can hold, or that would leave its root."""
    return _refuse(key, fault(key))


def check_path(key: str) -> str:
    """`key` itself, as what a folder holds already may be called: any path inside it. Raises InvalidLocation."""
    return _refuse(key, _fault_of_path(key))


def _refuse(key: str, reason: str | None) -> str:
    if reason:
        raise InvalidLocation(f"the key {key!r} {reason}: use names separated by single slashes, such as 'a/b.txt'")
    return key


def fault(key: str) -> str | None:
    """Why not every store can hold that key, as the rest of a sentence that begins with it; None for a good one."""
    return _fault_of_path(key) or _fault_of_text(key)


def _fault_of_path(key: str) -> str | None:
    names = key.split("/")
    if not key:
        return "is empty"
    if "" in names:
        return "starts or ends with a slash, or has two in a row"
    if "." in names or ".." in names:
        return "has '.' or '..' as a name"
    return "has a NUL byte" if "\0" in key else None


def _fault_of_text(key: str) -> str | None:
    if _CONTROL.search(key):
        return "has a control character"
    if any(map(is_own, key.split("/"))):
        return "has a name that the store reserves for its own files"
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        return "is not text that UTF-8 can encode"
    return f"is {length} bytes long, more than {MAX_KEY_BYTES}" if length > MAX_KEY_BYTES else None
