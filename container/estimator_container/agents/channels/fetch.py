"""Put the objects of a channel into folders: each fetched once, however many hosts there are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...storage import Object, Progress
from ...storage.landing import disk_errors
from ...storage.tree import KeyTree
from .channel import EVERY_HOST, ChannelTask, Links
from .shares import shares
from .source import ChannelSource, Item, local_path

FETCHED = "fetched"


@dataclass(frozen=True)
class Fetched:
    """What a channel holds."""

    objects: int
    size: int
    """In bytes."""


def fetch(
    channel: ChannelTask,
    source: ChannelSource,
    hosts: Sequence[str],
    links: Links,
    progress: Progress,
    wanted: Sequence[str] | None = None,
) -> Fetched:
    """Fill the channel's folder, which appears when all of it is there: `every-host`, or a folder for each host.

    Where there is a share for each host, those of the hosts that are `wanted` are fetched, or without a word all of
    them. Fetching starts with the first page of the listing, unless that has to be divided first. Files of this machine
    are not copied where a link of the kind that is asked for can stand for them. Raises StorageError.
    """
    draft = channel.draft
    whole = os.path.join(draft, FETCHED)
    with disk_errors(whole):
        os.makedirs(whole)
    given: dict[str, list[Object]] | None = None
    if channel.is_sharded and wanted is not None:
        source, given = _divided(source, hosts, channel.seed, wanted)
    found = _download(source, whole, links, progress)
    with disk_errors(draft):
        if channel.is_sharded:
            _share(draft, dict(zip(hosts, shares(found, len(hosts), channel.seed))) if given is None else given)
        else:
            os.rename(whole, os.path.join(draft, EVERY_HOST))
        os.rename(draft, channel.target)
    return Fetched(len(found), sum(each.size for each in found))


def _download(source: ChannelSource, folder: str, links: Links, progress: Progress) -> list[Object]:
    """Each file below the folder, with its size."""
    items = list[Item]()

    def to_fetch() -> Iterator[tuple[str | Object, str]]:
        for item in _each_once(source):
            items.append(item)
            yield item.target, os.path.join(folder, item.path)

    if local_path(source.store, "") is not None:
        return [_link(source, item, os.path.join(folder, item.path), links) for item in _each_once(source)]
    digests = source.store.download_many(to_fetch(), progress=progress)
    return [Object(item.path, digest.size, "") for item, digest in zip(items, digests)]


def _each_once(source: ChannelSource) -> Iterator[Item]:
    """The items, each with a path that a folder can hold beside the others; a manifest may say one twice.

    Raises InvalidLocation.
    """
    tree, said = KeyTree(source.uri), set[str]()
    for item in source.items:
        if isinstance(item.target, str):
            if item.target in said:
                continue
            said.add(item.target)
        tree.add(item.path)
        yield item


def _link(source: ChannelSource, item: Item, place: str, links: Links) -> Object:
    found = source.object_of(item)
    path = os.path.realpath(local_path(source.store, item.key) or "")
    with disk_errors(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if links == "symbolic":
            os.symlink(path, place)
        else:
            _link_hard(path, place)
    return Object(item.path, found.size, "")


def _link_hard(path: str, place: str) -> None:
    try:
        os.link(path, place)
    except OSError:  # another file system, or somebody else's file
        shutil.copyfile(path, place)


def _divided(
    source: ChannelSource, hosts: Sequence[str], seed: int | None, wanted: Sequence[str]
) -> tuple[ChannelSource, dict[str, list[Object]]]:
    """The source with what the hosts that are wanted get, and what that is; sizes are asked of the store."""
    items = list(_each_once(source))
    sizes = [each.size for each in replace(source, items=iter(items)).objects()]
    listed = [Object(item.path, size, "") for item, size in zip(items, sizes)]
    given = {host: share for host, share in zip(hosts, shares(listed, len(hosts), seed)) if host in wanted}
    paths = {each.key for share in given.values() for each in share}
    return replace(source, items=(item for item in items if item.path in paths)), given


def _share(draft: str, given: Mapping[str, Sequence[Object]]) -> None:
    """Move what was fetched to the folders of the hosts."""
    for host, share in given.items():
        os.makedirs(os.path.join(draft, host))
        for each in share:
            place = os.path.join(draft, host, each.key)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.rename(os.path.join(draft, FETCHED, each.key), place)
    shutil.rmtree(os.path.join(draft, FETCHED))
