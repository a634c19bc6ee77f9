"""The URIs that stand wherever SageMaker's arguments say S3: `s3://bucket/key` and `file:///folder`."""

from __future__ import annotations

from pathlib import Path

from estimator_container.contract.names import BUCKET_SCHEMES, FILE_SCHEME

from ..errors import InvalidArgument
from .naming import shown

_FILE = f"{FILE_SCHEME}://"
_MAX_PATH_BYTES = 4095  # PATH_MAX without the NUL at the end, linux/limits.h
_THIS_MACHINE = "localhost"
_RELATIVE = (".", "..")
"""How a relative path begins."""


def checked(argument: str, uri: str) -> str:
    """`uri` itself, or with its path made absolute where it is a `file://` URI of a relative path.

    What follows `file://` is a plain path of this machine, as in SageMaker's local mode (`file://./data`);
    nothing in it is unquoted. `file://localhost/data` is `file:///data` (RFC 8089, section 2). Raises InvalidArgument,
    which names `argument`, for anything else, another host in that place included.
    """
    if not isinstance(uri, str):
        raise InvalidArgument(argument, f"{argument} must be a str such as 's3://bucket/prefix', not {shown(uri)}")
    if uri.startswith(_FILE):
        return _FILE + _absolute(argument, _path(argument, uri.removeprefix(_FILE)))
    scheme, is_uri, rest = uri.partition("://")
    if is_uri and scheme in BUCKET_SCHEMES:
        if not rest.partition("/")[0]:
            example = f"{scheme}://bucket/prefix"
            raise InvalidArgument(argument, f"{argument} is {uri!r}, which names no bucket; write {example!r}")
        return uri
    if is_uri:
        known = " or ".join(f"{each}://" for each in (*BUCKET_SCHEMES, FILE_SCHEME))
        raise InvalidArgument(argument, f"{argument} is {uri!r}; {scheme}:// is not supported, use {known}")
    as_uri = _FILE + _absolute(argument, uri)
    raise InvalidArgument(argument, f"{argument} is the path {uri!r}; write it as a URI: {as_uri!r}")


def check_store(argument: str, uri: str) -> None:
    """Raises InvalidArgument for a URI that no store of this machine's jobs can be opened at.

    SageMaker reads keys of S3 that no path can be, such as those with two slashes in a row.
    """
    from estimator_container.storage import InvalidLocation
    from estimator_container.storage.location import parse

    try:
        parse(uri)
    except InvalidLocation as error:
        raise InvalidArgument(argument, f"{argument} is {uri!r}: {error}") from None


def check_room(argument: str, uri: str, below: str) -> None:
    """Raises InvalidArgument where a store at the URI could not hold the key `below`, for it would be too long."""
    from estimator_container.storage.location import MAX_KEY_BYTES, parse

    place = parse(uri)
    size = len(f"{place.root}/{below}".encode("utf-8", "surrogateescape"))
    most = _MAX_PATH_BYTES if place.is_folder else MAX_KEY_BYTES
    if size > most:
        what = f"{argument} is too long: a job would create paths of {size:,} bytes, but the limit is {most:,}"
        raise InvalidArgument(argument, f"{what}; give one that is {size - most:,} bytes shorter")


def _path(argument: str, rest: str) -> str:
    """The path in what follows `file://`: absolute, or relative with a dot at its beginning."""
    host, slash, path = rest.partition("/")
    if host in ("", *_RELATIVE):
        return rest
    if host.lower() == _THIS_MACHINE:
        return slash + path
    what = f"{argument} is {_FILE + rest!r}, where {host!r} names a host; only files on this machine can be read"
    hint = f"write '{_FILE}/{rest}', or '{_FILE}./{rest}' for a path from the current folder"
    raise InvalidArgument(argument, f"{what}; {hint}")


def _absolute(argument: str, path: str) -> str:
    if not path:
        raise InvalidArgument(argument, f"{argument} names no folder; write 'file:///folder' or 'file://./folder'")
    # `absolute` keeps "..", which means what it says even behind a symbolic link.
    return str(Path(path).absolute())
