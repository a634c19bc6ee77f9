"""Prints the arguments of the classes of SageMaker's SDK 2, by class, as JSON; run by the Python of that SDK."""

from __future__ import annotations

import inspect
import json

from sagemaker.estimator import Estimator
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow


def arguments(cls: type) -> list[str]:
    """Those of the class and, as each passes on what it does not know, of those that it is derived from."""
    found = [
        parameter.name
        for base in cls.__mro__[:-1]
        if "__init__" in vars(base)
        for parameter in inspect.signature(vars(base)["__init__"]).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    return sorted(set(found) - {"self"})


if __name__ == "__main__":
    print(json.dumps({cls.__name__: arguments(cls) for cls in (Estimator, TensorFlow, PyTorch)}))
