"""Job files: a job as YAML, in our own form or in that of a `riseml.yml`.

`read` makes an estimator of one. What a file may say is published as `job.schema.json` in this folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import EstimatorError, InvalidArgument

if TYPE_CHECKING:
    from ..display.progress import Logs
    from ..estimator.estimator import Estimator
    from ..job.job import Job
    from ..plan.plan import Plan
    from ..spec.training_input import Inputs
    from .document import Document
    from .parts import Parts

_PART = re.compile(r"\['([^']*)'\]|\[(\d+)\]|(\w+)")


@dataclass(frozen=True)
class JobFile:
    """A job file that was read: the estimator that it describes, and the inputs for `fit()`."""

    estimator: Estimator
    inputs: Inputs | None
    _document: Document
    _parts: Parts

    def plan(self, job_name: str | None = None) -> Plan:
        """What `fit()` would run. Starts nothing. Raises InvalidArgument, which names the file and the line."""
        with _placed(self._document, self._parts):
            return self.estimator.plan(self.inputs, job_name)

    def fit(self, wait: bool = True, logs: Logs | bool = "all", job_name: str | None = None) -> Job:
        """As `Estimator.fit`, with the file's inputs. Raises InvalidArgument as `plan`, and JobFailed."""
        from ..estimator import launch

        chosen = launch.checked_logs(logs)
        return launch.run(self.plan(job_name), wait, chosen)


def read(path: str | os.PathLike[str], *, from_step: str | None = None, backend: str | None = None) -> JobFile:
    """Read a job file, without starting anything.

    from_step: the step to begin with, by its name, or by its number if it has no name; earlier steps are left out.
    backend: the backend that runs the job, instead of the file's.

    Raises InvalidArgument, which names the file and the line, for a file that is not valid YAML, does not match the
    schema, or could not be run; EstimatorError if the packages for reading job files are missing.
    """
    from . import own, riseml

    try:
        from . import check, document

        found = document.Document(Path(path))
        check.check(found)
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'estimator-sdk[job-files]'`"
        raise EstimatorError(f"a job file needs the package {error.name}, which is not installed; {hint}") from None
    form = riseml if riseml.is_meant(found.value) else own
    parts = form.parts(found, backend)
    with _placed(found, parts):
        return JobFile(_estimator(parts, from_step), parts.inputs, found, parts)


def _estimator(parts: Parts, from_step: str | None) -> Estimator:
    from ..estimator.estimator import Estimator
    from ..estimator.frameworks import PyTorch, TensorFlow

    classes: dict[str | None, type[Estimator]] = {None: Estimator, "tensorflow": TensorFlow, "pytorch": PyTorch}
    estimator = classes[parts.framework](**parts.arguments)
    if from_step is not None:
        from ..spec import steps_argument

        steps = steps_argument.beginning_with(steps_argument.parse(estimator.steps), from_step)
        estimator.steps = [{"name": step.name, "run": step.line} for step in steps]
    return estimator


@contextmanager
def _placed(document: Document, parts: Parts) -> Iterator[None]:
    """Tell an error of the estimator with the file's own words, and the line that it is about."""
    try:
        yield
    except InvalidArgument as error:
        names = [a or (int(b) if b else c) for a, b, c in _PART.findall(error.argument)]
        name, rest = (str(names[0]) if names else "", names[1:])
        place = parts.places.get("steps" if name == "from_step" else name, (name,))
        message = _reworded(str(error), name, place) if name in parts.places else str(error)
        raise document.refuse((*place, *rest), error.argument, message) from None


def _reworded(message: str, argument: str, place: tuple[str | int, ...]) -> str:
    """An argument of the estimator goes by the name that the file has for it."""
    from .check import path

    if place == (argument,) or not message.startswith(argument):
        return message
    return path(place) + message[len(argument) :]
