"""SageMaker's ManifestFile: `[{"prefix": "s3://bucket/folder/"}, "relative/key", …]`."""

from __future__ import annotations

import json
import re

from .channel import ChannelError

_FORM = 'it must be a JSON list such as [{"prefix": "s3://bucket/folder/"}, "a.csv", "deep/b.csv"]'


def parse(text: bytes, uri: str) -> tuple[str, list[str]]:
    """What the manifest at `uri` says: a prefix, and names; an object's URI is the one with the other behind it.

    Raises ChannelError, which says what is wrong with the manifest.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChannelError(f"the manifest {uri} is not valid JSON ({error}): {_FORM}") from None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise ChannelError(f"the manifest {uri} does not begin with a prefix: {_FORM}")
    prefix = found[0].get("prefix")
    if not isinstance(prefix, str) or not re.match("s3://[^/]+/|file:///", prefix):
        raise ChannelError(f"the manifest {uri} has the prefix {prefix!r}: {_FORM}")
    if prefix.startswith("file:") and not uri.startswith("file:"):  # whoever writes a bucket reads no files here
        what = f"the manifest {uri} is in a bucket but has the prefix {prefix!r}, which is on this machine"
        raise ChannelError(f"{what}: {_FORM}, or copy the manifest to this machine")
    for number, name in enumerate(found[1:], 2):
        if not isinstance(name, str) or not name:
            raise ChannelError(f"entry {number} of the manifest {uri} is {name!r}, which is not a key: {_FORM}")
    if not found[1:]:
        raise ChannelError(f"the manifest {uri} lists no objects: {_FORM}")
    return prefix, found[1:]
