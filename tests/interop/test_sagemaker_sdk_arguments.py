"""Every argument of the installed SageMaker SDK 2 is one of ours, or is named in a warning or an error."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from pathlib import Path

import pytest

import estimator_sdk
from estimator_sdk import InvalidArgument
from estimator_sdk.estimator.sdk_v2_arguments import ArgumentIgnored
from tests.waiting import SECONDS

SDK = Path(__file__).parents[2] / ".venv-sagemaker" / "bin" / "python"
LISTING = Path(__file__).parent / "sagemaker_sdk" / "arguments.py"
GIVEN = object()


@pytest.fixture(scope="module")
def arguments() -> dict[str, list[str]]:
    if not SDK.exists():
        raise RuntimeError(f"{SDK} is missing: run scripts/setup tests")
    environment = {**os.environ, "SAGEMAKER_SUPPRESS_V2_WARNING": "1"}
    listed = subprocess.run(
        [str(SDK), str(LISTING)], capture_output=True, check=True, timeout=2 * SECONDS, env=environment
    )
    return json.loads(listed.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["Estimator", "TensorFlow", "PyTorch"])
def test_none_is_unknown_and_none_is_swallowed(arguments, name):
    cls = getattr(estimator_sdk, name)
    assert len(arguments[name]) > 50
    for argument in arguments[name]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                made = cls(**{"entry_point": "train.py", argument: GIVEN})
            except InvalidArgument as error:
                assert argument in str(error) and "has no argument" not in str(error)
                continue
        ignored = [str(each.message) for each in caught if each.category is ArgumentIgnored]
        assert getattr(made, argument, None) is GIVEN or any(argument in message for message in ignored), argument
