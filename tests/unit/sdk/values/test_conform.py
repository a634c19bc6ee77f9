import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.values.conform import conform

FITS = [
    (str, "a", "a"),
    (int, 3, 3),
    (float, 3, 3),
    (float, 2**53 + 1, 2**53 + 1),
    (float, 0.5, 0.5),
    (bool, False, False),
    (int | None, None, None),
    (str | os.PathLike[str], Path("a/b"), "a/b"),
    (Sequence[str | os.PathLike[str]], [Path("a"), "b"], ("a", "b")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (Sequence[str] | Mapping[str, str], {"a": "b"}, {"a": "b"}),
    (Literal["a", "b"] | None, "b", "b"),
    (object, {1}, {1}),
]
DOES_NOT_FIT = [
    (str, b"a", "x must be a str, not b'a' (bytes)"),
    (int, True, "x must be an int, not True (bool)"),
    (int, 1.0, "x must be an int, not 1.0 (float)"),
    (float, True, "x must be a number, not True (bool)"),
    (float, "1", "x must be a number, not '1' (str)"),
    (float | None, float("nan"), "x must be a number, not nan (float)"),
    (bool, 1, "x must be True or False, not 1 (int)"),
    (int, None, "x must be an int, not None"),
    (int | None, "a", "x must be an int, not 'a' (str)"),
    (str | os.PathLike[str], 3, "x must be a str or a path, not 3 (int)"),
    (Sequence[str], "ab", "x must be a list, not 'ab' (str)"),
    (tuple[int, ...], [1, "2"], "x[1] must be an int, not '2' (str)"),
    (Mapping[str, int], {"a": "1"}, "x['a'] must be an int, not '1' (str)"),
    (Mapping[str, int], {1: 1}, "x has the key 1 (int); keys must be strings"),
    (Sequence[str] | Mapping[str, str] | None, 3, "x must be a list or a dict, not 3 (int)"),
    (Sequence[str] | Mapping[str, str], [1], "x[0] must be a str, not 1 (int)"),
    (Literal["File", "Pipe"], "pipe", "x must be 'File' or 'Pipe', not 'pipe' (str); did you mean 'Pipe'?"),
    (Literal["a", "b"], ["a"], "x must be 'a' or 'b', not ['a'] (list)"),
]


@pytest.mark.parametrize(("hint", "value", "expected"), FITS)
def test_a_value_that_fits_comes_back_read_only(hint, value, expected):
    assert conform(hint, value, "x") == expected


@pytest.mark.parametrize(("hint", "value", "sentence"), DOES_NOT_FIT)
def test_a_value_that_does_not_fit_is_named_in_a_sentence(hint, value, sentence):
    with pytest.raises(InvalidArgument) as raised:
        conform(hint, value, "x")
    assert str(raised.value) == sentence
