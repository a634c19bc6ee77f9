"""Whether what was written is what the script meant to write, or what its death left of it.

A file that is closed may be whole, or half written by a rank that was killed: the kernel closes the files of the dead.
So each rank of a host has two files open from its start to its end, in a folder that is made for that: one under the
lowest free descriptor, one under the highest. The kernel closes a dead process's descriptors in their order, or in
the reverse order; either way one of the two is closed before anything that the script had opened in between. Whoever
finds a checkpoint closed, and after that both files of every rank still open, knows that no rank had died before.

A rank that has ended in order leaves words in its files, and does not count as dead.
"""

from __future__ import annotations

import os

from ..watching.leases import has_writer


def no_rank_died(alive: str) -> bool:
    """Whether every rank of the host lives, or ended in order. So too where there is no such folder, or no rank yet."""
    try:
        names = os.listdir(alive)
    except FileNotFoundError:
        return True
    return all(_lives_or_ended_well(os.path.join(alive, name)) for name in names)


def _lives_or_ended_well(path: str) -> bool:
    try:
        return has_writer(path) or os.stat(path).st_size > 0
    except PermissionError:
        return True  # another user's, as root's in a container: nothing can be told of it
