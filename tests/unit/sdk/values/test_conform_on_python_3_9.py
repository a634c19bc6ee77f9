"""Annotations that are read as Python 3.9 has to read them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import get_type_hints

import pytest

from estimator_sdk.backends.supervised.job_folder import record
from estimator_sdk.spec import job_document
from estimator_sdk.values.conform import evaluated

CLASSES = [
    each
    for module in (job_document, record)
    for each in vars(module).values()
    if isinstance(each, type) and is_dataclass(each)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_they_are_the_types_that_a_newer_python_reads(cls):
    assert evaluated(cls) == get_type_hints(cls) != {}
