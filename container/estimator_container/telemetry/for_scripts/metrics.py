"""Log the metrics of a training script: `from estimator_container import metrics; metrics.log(loss=0.3, step=7)`."""

from __future__ import annotations

import contextlib
import functools
import os

from estimator_container.telemetry import logged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def log(values: Mapping[str, object] | None = None, *, step: int | None = None, **more: object) -> None:
    """Log one value for each name, such as `log(loss=loss, step=step)` or `log({"train/loss": loss})`.

    A value is a number, or an array or tensor of one. `step` is the number of the training step; without it values are
    counted. Outside of a job nothing is written. It takes some microseconds, and a disk that is full ends nothing.
    Raises TypeError or ValueError for what is not a number, a name or a step.
    """
    if values is not None and not hasattr(values, "keys"):
        raise TypeError(f"metrics.log: {values!r} has no name: write metrics.log(loss=…), or give a dict")
    numbers = {name: logged.checked(name, value) for name, value in {**(values or {}), **more}.items()}
    if step is not None:
        step = _whole(step)
    file = _file_of_rank()
    if file is None or not numbers:
        return
    with contextlib.suppress(OSError):  # what it measures is not worth the training
        file.add(step, numbers)


@functools.lru_cache(maxsize=None)
def _file_of_rank() -> logged.ValueLog | None:
    """That of this process, if it is one of a job."""
    folder = logged.folder_of_job(os.environ)
    if folder is None:
        return None
    try:
        return logged.ValueLog(folder, os.environ.get("RANK"))
    except (OSError, ValueError):
        return None


def _whole(step: object) -> int:
    number = logged.checked("step", step)
    if not abs(number) < logged.MOST_STEPS or number != int(number):
        raise ValueError(f"metrics.log: step must be a whole number below 2**53, not {step!r}")
    return int(number)


os.register_at_fork(after_in_child=_file_of_rank.cache_clear)  # each process has a file of its own
