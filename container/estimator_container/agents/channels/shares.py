"""Which objects each host gets, and in which order: decisions about a listing, and nothing else."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

from ...storage import Object


def shares(objects: Sequence[Object], hosts: int, seed: int | None = None, epoch: int = 0) -> list[list[Object]]:
    """Every object to exactly one of so many hosts, balanced by bytes: the same for the same arguments.

    No two shares differ by more bytes than the largest object has, for each object goes to the host that has least.
    Without a seed the largest come first, which balances best, and each share is in the order of the keys; with one
    the shuffled order decides, so that a host gets others in another epoch.
    """
    found: list[list[Object]] = [[] for _ in range(hosts)]
    # Of equal bytes, as of empty objects, each host gets as many.
    lightest = [(0, 0, host) for host in range(hosts)]
    in_turn = ordered(objects, seed, epoch) if seed is not None else sorted(objects, key=_largest_first)
    for each in in_turn:
        size, count, host = lightest[0]
        found[host].append(each)
        heapq.heapreplace(lightest, (size + each.size, count + 1, host))
    return found if seed is not None else [ordered(share) for share in found]


def ordered(objects: Sequence[Object], seed: int | None = None, epoch: int = 0) -> list[Object]:
    """The objects as a pipe delivers them in an epoch: by the bytes of their keys, or shuffled anew each time."""
    found = sorted(objects, key=_key)
    if seed is not None:
        random.Random(f"{seed}/{epoch}").shuffle(found)
    return found


def _key(each: Object) -> bytes:
    return each.key.encode("utf-8", "surrogateescape")  # a file may have a name that is no text


def _largest_first(each: Object) -> tuple[int, bytes]:
    return -each.size, _key(each)
