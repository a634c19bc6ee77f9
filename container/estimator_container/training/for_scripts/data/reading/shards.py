"""The shards of a data set: where they are, and how many samples each has."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_container.storage import Object, open_store

from ..errors import DataError
from .formats import FORMATS, format_of

INDEX = "index.json"
"""The name of the list of shards; its form is that of `wids`, of the webdataset package."""
INDEX_KIND = "wids-shard-index-v1"


@dataclass(frozen=True)
class ShardSource:
    """Where shards are."""

    uri: str
    """`file://` or `s3://`, of the folder."""
    is_at_hand: bool
    """Whether they are files of this machine that may be read here and there; else they are brought first."""


@dataclass(frozen=True)
class Shards:
    """All shards of a data set, in the order of their names."""

    source: ShardSource
    format: str
    objects: tuple[Object, ...]
    samples: tuple[int, ...]
    """Of each shard."""

    @property
    def fingerprint(self) -> str:
        """The same for the same shards with the same numbers of samples, wherever they are."""
        named = [[each.key, count] for each, count in zip(self.objects, self.samples)]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]


def source_of(name: str) -> ShardSource:
    """The place that a channel, a path or a URI means.

    Raises DataError for a channel that the job does not have, and for a file.
    """
    if "://" in name and not name.startswith("file://"):
        return ShardSource(name, False)
    if name.startswith(("/", ".", "file://")):
        path = name[len("file://") :] if name.startswith("file://") else os.path.abspath(name)
        if os.path.isfile(path):
            folder, _, file = path.rpartition("/")
            raise DataError(
                f"{path} is a file: give its folder, {folder}, and for this file alone the pattern {file!r}"
            )
        return ShardSource(f"file://{path}", True)
    place = os.environ.get(f"SM_CHANNEL_{name.upper()}")
    if place is None:
        channels = os.environ.get("SM_CHANNELS", "[]")
        raise DataError(
            f"there is no channel {name!r} here: the job's channels are {channels}; name one of them, "
            "or give a path that begins with '/' or './', or a URI"
        )
    mode = channel_settings(name).get("TrainingInputMode")
    if mode == "Pipe":
        raise DataError(f"the channel {name!r} is in pipe mode: use PipeDataset({name!r}, …), or input_mode='File'")
    return ShardSource(f"file://{place}", mode != "FastFile")


def channel_settings(name: str) -> dict[str, Any]:
    """What the platform says of a channel; nothing where there is none."""
    try:
        found = json.loads(os.environ.get("SM_INPUT_DATA_CONFIG", "{}")).get(name)
    except (ValueError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


Count = Callable[[str, Object], int]
"""How many samples a shard of a format has."""


def find(
    source: ShardSource, pattern: str | None, format: str | None, count: Count, *, trusts_index: bool = True
) -> Shards:
    """List the shards, and take the numbers of their samples from the index, or count those that have none.

    Raises DataError where there is no shard, or a file that would be left out in silence; and StorageError.
    """
    store = open_store(source.uri)
    listed = sorted(store.list(), key=lambda each: each.key.encode("utf-8", "surrogateescape"))
    has_index = trusts_index and any(each.key == INDEX for each in listed)
    wanted = [each for each in listed if each.key != INDEX and _is_wanted(each.key, pattern)]
    if not wanted:
        what = "has no files" if pattern is None else f"has no file that fits {pattern!r}"
        raise DataError(f"{source.uri} {what}: check the channel and the pattern")
    if format is not None and format not in FORMATS:
        raise DataError(f"there is no format {format!r}: use one of {', '.join(FORMATS)}")
    format = format or _format(source, wanted)
    known = _indexed(store.read(INDEX), source) if has_index else {}
    if pattern is None and known:
        _check_complete(source, known, wanted)
    samples = tuple(known[each.key] if each.key in known else count(format, each) for each in wanted)
    return Shards(source, format, tuple(wanted), samples)


def index_of(names: Sequence[str], samples: Sequence[int], sizes: Sequence[int]) -> bytes:
    """The list of shards as it is kept beside them."""
    shards = [{"url": name, "nsamples": n, "filesize": size} for name, n, size in zip(names, samples, sizes)]
    return json.dumps({"__kind__": INDEX_KIND, "wids_version": 1, "shardlist": shards}, indent=1).encode()


def _is_wanted(key: str, pattern: str | None) -> bool:
    if pattern is not None:
        return fnmatch.fnmatchcase(key, pattern)
    return not any(name.startswith((".", "_")) for name in key.split("/"))


def _format(source: ShardSource, wanted: Sequence[Object]) -> str:
    """The format that all of the names have."""
    found = {each.key: format_of(each.key) for each in wanted}
    strange = next((key for key, format in found.items() if format is None), None)
    if strange is not None:
        raise DataError(
            f"{source.uri} has the file {strange!r}, whose name tells no format: name the shards with pattern='*.tar' "
            f"or the like, or give format= ({', '.join(FORMATS)}); 'estimator data pack' makes shards of small files"
        )
    formats = sorted({format for format in found.values() if format is not None})
    if len(formats) > 1:
        raise DataError(f"{source.uri} has shards of several formats ({', '.join(formats)}): choose some with pattern=")
    return formats[0]


def _indexed(text: bytes, source: ShardSource) -> dict[str, int]:
    """Shard -> its samples."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("__kind__") != INDEX_KIND:
            return {}  # somebody else's
        return {str(each["url"]): int(each["nsamples"]) for each in document["shardlist"]}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{source.uri}/{INDEX} is not a list of shards ({error!r}): write it again, or remove it"
        ) from None


def _check_complete(source: ShardSource, known: dict[str, int], wanted: Sequence[Object]) -> None:
    there = {each.key for each in wanted}
    for fault, keys in (("lists", set(known) - there), ("does not list", there - set(known))):
        if keys:
            other = "which is not there" if fault == "lists" else "which is"
            what = f"{source.uri}/{INDEX} {fault} {min(keys)!r}, {other}"
            raise DataError(f"{what}: bring all shards, or write the list again with 'estimator data index'")
