"""The JSON Schema of job files, made of the estimator's own annotations and their docstrings.

`python -m estimator_sdk.job_files.schema` prints it. It is published as `job.schema.json` beside this file.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ..backends.slurm.options import SlurmOptions
from ..values.conform import field_hints, without_none

FILE = Path(__file__).parent / "job.schema.json"
ADDRESS = "https://github.com/estimator-sdk/estimator-sdk/raw/main/estimator_sdk/job_files/job.schema.json"
FRAMEWORKS = ("tensorflow", "pytorch")

Schema = dict[str, Any]
_SCALARS: Mapping[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    object: {},
}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_LINE: Schema = {"type": "string", "minLength": 1}


def published() -> Schema:
    """The schema as it is published."""
    document: Schema = json.loads(FILE.read_text(encoding="utf-8"))
    return document


def build() -> Schema:
    """The schema of today's estimator: a file with `project` or `train` is of RiseML's form, any other of ours."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ADDRESS,
        "title": "A training job of estimator-sdk",
        "type": "object",
        "if": {"anyOf": [{"required": ["project"]}, {"required": ["train"]}]},
        "then": {"$ref": "#/definitions/riseml"},
        "else": {"$ref": "#/definitions/job"},
        "definitions": {"job": _job(), "riseml": _riseml(), "input": _input()},
    }


def _job() -> Schema:
    from ..estimator.frameworks import TensorFlow
    from ..spec.limits import RANGES

    given = _properties(TensorFlow)  # which has all that a plain estimator has
    for name, (low, high) in RANGES.items():
        given[name] |= {"minimum": low} if high is None else {"minimum": low, "maximum": high}
    given["distribution"] |= _object(_distributions())
    given["steps"] |= {"items": {"anyOf": [_LINE, _step()]}, "minItems": 1}
    given["framework"] = {
        "enum": list(FRAMEWORKS),
        "description": "Chooses the image, or compares this Python environment with `framework_version`.",
    }
    given["inputs"] = {
        "description": "Input data: a URI, a path relative to this file's folder, or several of these by channel name.",
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "string"}, {"$ref": "#/definitions/input"}]},
            },
        ],
    }
    depends = {name: ["framework"] for name in ("framework_version", "py_version")}
    return {**_object(given), "dependencies": depends}


def _distributions() -> dict[str, Schema]:
    from ..spec.distributions import NAMES, options_of

    found = {name: _properties(options_of(name)) for name in NAMES}
    for options in found.values():
        if "processes_per_host" in options:
            options["processes_per_host"] |= _COUNT
    return {name: _object(options, required=["enabled"]) for name, options in found.items()}


def _step() -> Schema:
    return _object({"name": _LINE, "run": _LINE}, required=["run"])


def _input() -> Schema:
    from ..spec.training_input import TrainingInput

    return _object(_properties(TrainingInput), required=["s3_data"])


def _riseml() -> Schema:
    from ..spec.limits import RANGES
    from .riseml import MIB_OF_GIB

    workers = {
        "description": "The number of workers (hosts), or that and the processes of each; by default one per GPU.",
        "anyOf": [_COUNT, _object({"count": _COUNT, "processes": _COUNT}, required=["count"])],
    }
    version = {
        "type": ["string", "number"],
        "description": "Such as 2.21: chooses the image, or is compared with this Python environment.",
    }
    tensorflow = {
        "version": version,
        "horovod": _object({"workers": workers}, required=["workers"]),
        "tensorboard": _not_supported("start TensorBoard yourself on the folder that the script writes to"),
    }
    resources = {
        "gpus": {"type": "integer", "minimum": 0, "description": "GPUs per worker."},
        "cpus": {"type": "number", "minimum": RANGES["cpus"][0], "description": "CPUs per worker."},
        "mem": {
            "type": "number",
            "minimum": int(RANGES["memory"][0] * MIB_OF_GIB),
            "description": "MiB of memory per worker.",
        },
    }
    train = {
        "framework": {"enum": ["tensorflow"]},
        "tensorflow": _object(tensorflow),
        "resources": _object(resources),
        "run": {
            "description": "Each process runs a line, then waits until all processes of all workers have finished it.",
            "anyOf": [_LINE, {"type": "array", "items": _LINE, "minItems": 1}],
        },
        "install": _not_supported("name the packages in a requirements.txt beside this file"),
        "parameters": _not_supported("run the job once for each set of values"),
    }
    return _object(
        {
            "project": {**_LINE, "description": "The start of the job's name."},
            "train": _object(train, required=["framework", "run"]),
            "deploy": _not_supported("keep what deploys a model in a separate file"),
        },
        required=["project", "train"],
    )


def _not_supported(hint: str) -> Schema:
    return {"not": {}, "description": f"Not supported: {hint}."}


def _object(properties: Schema, required: Sequence[str] = ()) -> Schema:
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needs}


def _properties(cls: type) -> Schema:
    texts = {name: text for each in reversed(cls.__mro__) for name, text in _docstrings(each).items()}
    return {
        name: {**_of_hint(without_none(hint)), **({"description": texts[name]} if name in texts else {})}
        for name, hint in field_hints(cls).items()
    }


def _of_hint(hint: object) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (tuple, Sequence):
        return {"type": "array", "items": _of_hint(arguments[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of_hint(arguments[1])}
    if origin in (Union, UnionType):
        # A file has strings in the place of Python's paths, and no value in the place of None.
        kinds = [_of_hint(each) for each in arguments if each is not type(None) and "PathLike" not in str(each)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if hint is SlurmOptions:  # whose dict has its fields as they are
        return _object(_properties(SlurmOptions))
    if hasattr(hint, "from_document"):
        return {"type": "object"}
    return dict(_SCALARS[hint])


def _docstrings(cls: type) -> dict[str, str]:
    """The text under each field of a dataclass, on one line."""
    if cls is object:
        return {}
    (tree,) = (each for each in ast.parse(inspect.getsource(cls)).body if isinstance(each, ast.ClassDef))
    found = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            name, text = ast.unparse(statement.target), ast.literal_eval(following.value)
            found[name] = " ".join(text.split())
    return found


if __name__ == "__main__":
    json.dump(build(), sys.stdout, indent=1, ensure_ascii=False)
    print()
