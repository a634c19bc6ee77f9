"""Put the objects of a channel into folders: each fetched once, however many hosts there are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..storage import Object, Progress
from ..storage.landing import disk_errors
from .channel import EVERY_HOST, Channel
from .shares import shares
from .source import Item, Source, local_path

if TYPE_CHECKING:
    from typing import Literal

    Links = Literal["symbolic", "hard"]
else:
    Links = str

FETCHED = "fetched"


@dataclass(frozen=True)
class Fetched:
    """What a channel holds."""

    objects: int
    size: int
    """In bytes."""


def fetch(channel: Channel, source: Source, hosts: Sequence[str], links: Links, progress: Progress) -> Fetched:
    """Fill the channel's folder, which appears when all of it is there: `every-host`, or a folder for each host.

    Fetching starts with the first page of the listing. Files of this machine are not copied where a link of the kind
    that is asked for can stand for them. Raises StorageError.
    """
    draft = f"{channel.target}.part"
    whole = os.path.join(draft, FETCHED)
    with disk_errors(whole):
        os.makedirs(whole)
    found = _download(source, whole, links, progress)
    with disk_errors(draft):
        if channel.is_sharded:
            _share(found, draft, hosts, channel.seed)
        else:
            os.rename(whole, os.path.join(draft, EVERY_HOST))
        os.rename(draft, channel.target)
    return Fetched(len(found), sum(each.size for each in found))


def _download(source: Source, folder: str, links: Links, progress: Progress) -> list[Object]:
    """Each file below the folder, with its size."""
    items = list[Item]()

    def to_fetch() -> Iterator[tuple[str | Object, str]]:
        seen = set[str]()
        for item in source.items:
            if item.path not in seen:
                seen.add(item.path)
                items.append(item)
                yield item.target, os.path.join(folder, item.path)

    if local_path(source.store, "") is not None:
        linked = [_link(source, item, os.path.join(folder, item.path), links) for item in source.items]
        return list({each.key: each for each in linked}.values())
    digests = source.store.download_many(to_fetch(), progress=progress)
    return [Object(item.path, digest.size, "") for item, digest in zip(items, digests)]


def _link(source: Source, item: Item, place: str, links: Links) -> Object:
    path = os.path.realpath(local_path(source.store, item.key) or "")
    if not os.path.exists(path):
        source.store.read(item.key, (0, 0))  # says that it is not there
    with disk_errors(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place):
            pass  # a manifest may say it twice
        elif links == "symbolic":
            os.symlink(path, place)
        else:
            _link_hard(path, place)
    return Object(item.path, os.stat(path).st_size, "")


def _link_hard(path: str, place: str) -> None:
    try:
        os.link(path, place)
    except OSError:  # another file system, or somebody else's file
        shutil.copyfile(path, place)


def _share(found: Sequence[Object], draft: str, hosts: Sequence[str], seed: int | None) -> None:
    for host, share in zip(hosts, shares(found, len(hosts), seed)):
        os.makedirs(os.path.join(draft, host))
        for each in share:
            place = os.path.join(draft, host, each.key)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.rename(os.path.join(draft, FETCHED, each.key), place)
    shutil.rmtree(os.path.join(draft, FETCHED))
