"""Advice that is tried: what it would change in the script is changed here, for one run."""

from __future__ import annotations

import functools
import io
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

from . import words

T = TypeVar("T")
SWITCH_SECONDS = 0.0005
"""How long a thread may compute before another one is let in."""
_writers: list[threading.Thread] = []


def ahead(batches: Iterator[T], count: int) -> Iterator[T]:
    """The same batches, of which a thread reads so many ahead; what reading raises is raised here.

    While the steps compute in Python, it is let in soon, or each wait of its own would take 5 ms longer.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    given: queue.Queue[tuple[bool, Any]] = queue.Queue(count)

    def read() -> None:
        try:
            for batch in batches:
                given.put((True, batch))
            given.put((False, None))
        except BaseException as error:
            given.put((False, error))

    threading.Thread(target=read, name="reads-ahead", daemon=True).start()
    while True:
        is_batch, what = given.get()
        if is_batch:
            yield what
        elif what is None:
            return
        else:
            raise what


def with_workers(loader: Any) -> None:
    """Give a DataLoader as many workers as this trial says, if they can share its samples."""
    count = words.number(words.WORKERS)
    if count and can_share(loader):
        loader.num_workers = count
        loader.prefetch_factor = loader.prefetch_factor or 2


def can_share(loader: Any) -> bool:
    """Whether workers of a DataLoader can share its samples: these have numbers, or are a data set of the toolkit.

    Of others that iterate, each worker would give all samples.
    """
    samples = loader.dataset
    has_numbers = hasattr(samples, "__getitem__") and not hasattr(samples, "__iter__")
    return has_numbers or getattr(samples, "is_shared_by_workers", False)


def mapped_in_parallel(dataset: Any, as_many_as_fit: int) -> None:
    """Have `map` of a class of datasets of TensorFlow make several calls at once where the script does not say."""
    stock = dataset.map

    @functools.wraps(stock)
    def map(self: Any, map_func: Any, num_parallel_calls: Any = None, *args: Any, **kwargs: Any) -> Any:
        return stock(self, map_func, num_parallel_calls or as_many_as_fit, *args, **kwargs)

    dataset.map = map


def in_background(save: Callable[..., None]) -> Callable[..., None]:
    """`torch.save` that returns when its bytes are made; the one before it is written first."""

    @functools.wraps(save)
    def saving(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        made = io.BytesIO()
        save(obj, made, *args, **kwargs)
        for writer in _writers:
            writer.join()
        _writers[:] = [threading.Thread(target=_write, args=(made.getbuffer(), f), name="writes-checkpoints")]
        _writers[0].start()

    return saving


def _write(data: memoryview, target: Any) -> None:
    if hasattr(target, "write"):
        target.write(data)
        return
    with open(os.fspath(target), "wb") as file:
        file.write(data)
