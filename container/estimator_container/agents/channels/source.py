"""The objects of a channel, as they are listed."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Union

from ...storage import NotFound, Object, Store, open_store
from ...storage.location import check_key, parse
from . import manifest
from .channel import ChannelError, ChannelTask

RETRY_SECONDS = 120.0  # that a store may be away before a channel is given up
HEADS_AT_ONCE = 32

Target = Union[str, Object]
"""What `Store.download` takes: an object as it was listed, or the key of one that was not."""


@dataclass(frozen=True)
class Item:
    """One object of a channel."""

    target: Target
    path: str
    """Where it belongs below the channel's folder."""

    @property
    def key(self) -> str:
        """The object's key in its store."""
        return self.target if isinstance(self.target, str) else self.target.key


@dataclass(frozen=True)
class ChannelSource:
    """The store of a channel, and its objects."""

    store: Store
    items: Iterator[Item]
    """In the order of a listing, which is taken page by page; or in that of a manifest."""
    uri: str
    """What the paths of the items are below."""

    def objects(self) -> Iterator[Object]:
        """The same with their sizes and versions, which a manifest does not tell."""
        with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
            while batch := list(itertools.islice(self.items, HEADS_AT_ONCE)):
                listed = [item.target for item in batch if isinstance(item.target, Object)]
                yield from listed if len(listed) == len(batch) else pool.map(self.object_of, batch)

    def object_of(self, item: Item) -> Object:
        """An item with its size and version. Raises NotFound where there is no such object."""
        found = self.store.head(item.target) if isinstance(item.target, str) else item.target
        if found is None:
            raise NotFound(f"{self.store.uri.rstrip('/')}/{item.key} does not exist: check the manifest")
        return found


def open_source(channel: ChannelTask) -> ChannelSource:
    """Find the first objects of a channel. Raises ChannelError where there is none, and StorageError."""
    source = _listed_in_manifest(channel.uri) if channel.is_manifest else _below(channel.uri)
    first = next(source.items, None)
    if first is None:
        raise ChannelError(f"no object's key starts with {channel.uri}: check the bucket and the prefix")
    return replace(source, items=itertools.chain([first], source.items))


def local_path(store: Store, key: str) -> str | None:
    """The file that an object is, in a store that is a folder."""
    return f"{store.uri[len('file://') :].rstrip('/')}/{key}" if store.uri.startswith("file://") else None


def _below(uri: str) -> ChannelSource:
    """The objects in the folder `uri`; where there is none, the object of that key; else all keys that start so."""
    parent, name = _split(uri)
    store = open_store(parent, retry_seconds=RETRY_SECONDS)
    if not name:
        return ChannelSource(store, (Item(each, each.key) for each in store.list()), store.uri)
    folder = f"{name}/"
    inside = (Item(each, each.key[len(folder) :]) for each in store.list(folder))
    first = next(inside, None)
    if first is not None:
        return ChannelSource(store, itertools.chain([first], inside), f"{store.uri.rstrip('/')}/{name}")
    if uri.endswith("/"):
        return ChannelSource(store, iter(()), store.uri)
    starting = (Item(each, each.key) for each in store.list(name))
    first = next(starting, None)
    if first is None or first.key == name:
        return ChannelSource(store, iter([first] if first else ()), store.uri)
    return ChannelSource(store, itertools.chain([first], starting), store.uri)


def _listed_in_manifest(uri: str) -> ChannelSource:
    parent, name = _split(uri)
    if not name:
        raise ChannelError(f"{uri} names no manifest: write the URI of one object")
    prefix, names = manifest.parse(open_store(parent, retry_seconds=RETRY_SECONDS).read(name), uri)
    parse(prefix)  # refuses slashes that the names below could not keep
    folder, _, start = prefix.rpartition("/")
    store = open_store(folder if folder != "file://" else "file:///", retry_seconds=RETRY_SECONDS)
    items = [Item(check_key(start + name), check_key(name)) for name in names]
    return ChannelSource(store, iter(items), prefix)


def _split(uri: str) -> tuple[str, str]:
    """The URI of the folder that something is in, and its name there; no name for a whole bucket."""
    location = parse(uri)
    # What follows `file://` is a path as it stands: only the system knows where ".." behind a link leads.
    whole = uri[len("file://") :].rstrip("/") if location.is_folder else f"{location.bucket}/{location.root}"
    parent, name = posixpath.split(whole)
    return f"{location.scheme}://{parent or '/'}", name
