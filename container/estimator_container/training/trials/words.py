"""What a trial is: a word for each thing that is different, some with a number, as in `workers=4,look`."""

from __future__ import annotations

import os

from ...contract.names import DOCTOR

REPLAY = "replay"
"""Each loader gives its first batch again and again, so that the rank waits for no other."""
NO_CHECKPOINTS = "no-checkpoints"
"""What would save one returns at once."""
WARM, COLD = "warm-cache", "cold-cache"
"""The files of all channels are in the page cache of the host when the script begins, or none of them is."""
LOOK = "look"
"""It is looked at what the rank does while it waits for input, and written to its standard error."""
WORKERS = "workers"
"""So many for each DataLoader of samples that have numbers."""
PREFETCH = "prefetch"
"""So many batches are read ahead: of `timed_input` by a thread, of `tf.data` by its own."""
PARALLEL = "parallel"
"""What `tf.data` maps one after the other it maps with as many calls at once as it sees fit."""
KEEP = "keep"
"""What `tf.data` maps without a random number in it is kept in memory, so that the next pass need not make it again."""
STACK = "stack"
"""Up to so many elements of a `from_generator` of `tf.data` come from Python at once."""
GO_ON = "go-on"
"""`fit` of Keras takes one iterator of `tf.data` for all epochs, and one for all validations."""
CHECKPOINT_EVERY = "checkpoint-every"
"""Of so many checkpoints one is written."""
IN_BACKGROUND = "checkpoints-in-background"
"""`torch.save` makes its bytes in memory, and a thread writes them."""

OWN_CPUS = "own-cpus"
"""Each rank keeps to its part of the CPUs of its host."""
HALF = "half"
"""Horovod sends numbers of 16 bits in the place of longer ones."""


def has(word: str) -> bool:
    """Whether this is a trial with that."""
    return word in _words()


def number(word: str) -> int:
    """The number that a word has in this trial; 0 in others."""
    return int(_words().get(word) or 0)


def _words() -> dict[str, str]:
    given = os.environ.get(DOCTOR, "")
    return {word: value for word, _, value in (each.partition("=") for each in given.split(",")) if word}
