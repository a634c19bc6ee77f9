"""Our own form of a job file: the estimator's arguments under their names, its `inputs`, and its `framework`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .parts import Parts

if TYPE_CHECKING:
    from ..spec.training_input import Input
    from .document import Document


def parts(document: Document, backend: str | None) -> Parts:
    """What a file of this form says; paths are from its folder. Raises InvalidArgument for data that is not there."""
    given: dict[str, Any] = dict(document.value)
    framework = given.pop("framework", None)
    inputs = given.pop("inputs", None)
    folder = document.path.parent
    for name in ("source_dir", *(() if "source_dir" in given else ("entry_point",))):
        if name in given:
            given[name] = _from(folder, given[name])
    if "dependencies" in given:
        given["dependencies"] = [_from(folder, each) for each in given["dependencies"]]
    if backend is not None:
        given["backend"] = backend
    places = {name: (name,) for name in given}
    if isinstance(inputs, dict):
        found = {name: _input(document, value, ("inputs", name)) for name, value in inputs.items()}
        return Parts(framework, given, places, found)
    return Parts(framework, given, places, None if inputs is None else _input(document, inputs, ("inputs",)))


def _from(folder: Path, path: str) -> str:
    return path if "://" in path else str(folder / path)


def _input(document: Document, value: str | dict[str, Any], place: tuple[str, ...]) -> Input:
    from ..spec.training_input import TrainingInput

    if isinstance(value, str):
        return _uri(document, value, place)
    return TrainingInput(**{**value, "s3_data": _uri(document, value["s3_data"], (*place, "s3_data"))})


def _uri(document: Document, value: str, place: tuple[str, ...]) -> str:
    """A URI as it is, and a path of this machine as one."""
    if "://" in value:
        return value
    path = (document.path.parent / value).resolve()
    if not path.exists():
        name = ".".join(place)
        what = f"{name} is {value!r}, but there is no such file or folder beside the job file"
        raise document.refuse(place, name, f"{what}; fix the path, or give an s3:// URI")
    return f"file://{path}"  # nothing in it is quoted
