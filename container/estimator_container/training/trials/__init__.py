"""Trials of the doctor: short runs of a script with something left out, changed, or looked at, and compared.

    words.py        what a trial is, as the variable of its ranks says it
    left_out.py     the first batch again, checkpoints that are not written
    page_cache.py   the channels' files brought into the page cache of the host, or dropped from it
    applied.py      advice that is tried: workers, reading ahead, checkpoints less often or in the background
    world.py        the same between ranks: CPUs of their own, gradients sent in 16 bits
    kept.py         what `tf.data` makes once and keeps in memory, and how much memory that takes
    from_python.py  what Python gives `tf.data`, handed over in stacks, and what it takes to make it
    going_on.py     one iterator for all epochs of `fit`
    watch.py        what a process does while its rank waits for input, looked at a hundred times a second
    doing.py        what a thread does, by its stack

Without that variable nothing of this is imported but `words`.
"""

from __future__ import annotations

from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ..step_account import StepAccount

    Batch = TypeVar("Batch")


def begin(account: StepAccount) -> None:
    """Begin what the trial of this rank asks for at the start of its script."""
    from . import page_cache, words, world

    if words.has(words.OWN_CPUS):
        world.keep_to_own_cpus()
    if words.has(words.HALF):
        world.send_half()
    if words.has(words.WARM):
        page_cache.warm()
    if words.has(words.COLD):
        page_cache.drop()
    if words.has(words.LOOK):
        from .watch import InputWatch

        InputWatch(account).begin()


def of_iterator(batches: Iterator[Batch], by: str, count: int | None) -> Iterator[Batch]:
    """The batches of `timed_input`, or of a data set of the toolkit, with what the trial changes."""
    from . import applied, left_out, words

    if words.has(words.LOOK):
        from . import watch

        watch.saw_loader(by)
    if words.has(words.REPLAY):
        return left_out.first_again(batches, count)
    ahead = words.number(words.PREFETCH) if by == "timed_input" else 0  # the others read ahead by themselves
    return applied.ahead(batches, ahead) if ahead else batches
