"""Starting scripts on machines of a pool, and ending what is left of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from estimator_sdk import Estimator, Job, JobFailed, JobNotFound
from tests.waiting import SECONDS


@contextlib.contextmanager
def submitting(folder: Path, **defaults: object) -> Iterator[Callable[..., Job]]:
    """What starts a script on two machines, and returns its job; at the end all of them are stopped."""
    started: list[Job] = []

    def submitted(source: str, **arguments: object) -> Job:
        (folder / "train.py").write_text(source)
        given = {"entry_point": str(folder / "train.py"), "instance_count": 2, **defaults, **arguments}
        inputs = given.pop("inputs", None)
        started.append(Estimator(**given).fit(inputs, wait=False))
        return started[-1]

    yield submitted
    for job in started:
        with contextlib.suppress(JobNotFound, JobFailed):
            job.stop()
            job.wait(SECONDS)
