"""The examples in docstrings come to what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)
MODULES = sorted(
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    for folder in ("estimator_sdk", "container/estimator_container", "benchmarks", "tests")
    for root in [(ROOT / folder).parent]
    for path in (ROOT / folder).rglob("*.py")
    if EXAMPLE.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_a_module_hold(module):
    failed, tried = doctest.testmod(import_module(module))
    assert tried > 0 and failed == 0
