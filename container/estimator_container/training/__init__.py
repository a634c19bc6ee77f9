"""The training steps of a rank: when each has ended, how much of it was the rank's own work, and what took the time.

    step_clock.py    counting steps, and telling a rank's own work from its waiting for others
    step_account.py  waiting for input, communicating, checkpointing, idle
    page.py          where the rank keeps both, and its host reads it
    boundaries/      what of frameworks is hooked to see where these begin and end
    trials/          runs of the doctor, in which something of that is left out, changed or looked at
    window.py        what a rank records in detail, when that is asked for
    recorders.py     Horovod's timeline and PyTorch's profiler, by their own start and stop
    for_scripts/     what scripts import as `estimator_container.data`

What optimizers do is seen by the hooks of `drift`; the functions here are for scripts whose steps nobody sees.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from .step_clock import StepClock
    from .window import Window

    Batch = TypeVar("Batch")


def mark_step(step: int | None = None) -> None:
    """Say that a training step of this rank has just ended; does nothing outside of a job.

    `step` is its number, where the script counts by itself, as after a restart. Call it in each rank, once in each
    step; from then on only these calls count. A call takes less than a microsecond, and makes no system call. In a job
    it raises TypeError for a step that is not a whole number below 2**63.
    """
    clock = clock_of_rank()
    if clock is None:
        return
    try:
        clock.mark_explicitly(step)
    except (TypeError, ValueError):
        if step is None or (isinstance(step, int) and abs(step) < 1 << 63):
            raise
        raise TypeError(f"mark_step: the step must be a whole number below 2**63, not {step!r}") from None


def timed_input(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same batches, where waiting for each counts as waiting for input: `for batch in timed_input(batches):`.

    What DataLoader, `tf.data` and `fit` of Keras give needs no such call. Outside of a job it changes nothing.
    """
    clock = clock_of_rank()
    if clock is None:
        yield from batches
        return
    from .boundaries.timed import taking

    take = taking(iter(batches), clock.account, "timed_input")
    while True:
        try:
            batch = take()
        except StopIteration:
            return
        yield batch


def checkpointing() -> contextlib.AbstractContextManager[None]:
    """What is done `with checkpointing():` counts as writing a checkpoint; for what the framework does not save."""
    from .page import CHECKPOINT

    return _spending(CHECKPOINT)


def communicating() -> contextlib.AbstractContextManager[None]:
    """What is done `with communicating():` counts as communicating with other ranks; for what nobody else sees."""
    from .page import COMMUNICATION

    return _spending(COMMUNICATION)


@contextlib.contextmanager
def _spending(kind: int) -> Iterator[None]:
    clock = clock_of_rank()
    if clock is None:
        yield
        return
    clock.account.begin(kind)
    try:
        yield
    finally:
        clock.account.end()


@functools.lru_cache(maxsize=None)
def clock_of_rank() -> StepClock | None:
    """The clock of this process, if it is a rank of a job and no other process counts for that rank."""
    output = os.environ.get("SM_OUTPUT_DIR")
    if output is None:
        return None
    from ..contract.names import DOCTOR, Layout
    from .page import open_page

    layout, rank = Layout(os.path.dirname(output)), os.environ.get("RANK")
    page = open_page(layout.training_steps, rank)
    if page is None:
        return None
    from .step_clock import StepClock

    clock = StepClock(page, functools.partial(_begin_window, layout.timelines, rank))
    os.register_at_fork(after_in_child=clock.stop)  # a child of the rank is none, though it has the page too
    if os.environ.get(DOCTOR):
        from . import trials

        trials.begin(clock.account)
    return clock


def _begin_window(folder: str, rank: str | None, number: int) -> Window:
    from .window import Window  # hardly any job is asked for one

    return Window(folder, None if rank is None else int(rank), number)
