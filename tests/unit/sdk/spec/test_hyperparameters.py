import json
import math
from datetime import date

import numpy
import pytest
from estimator_container.contract.hyperparameters import decode
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec.hyperparameters import check_count, check_service_limits, encode

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="=\x85\u2028\u2029", exclude_categories=["Cc"]), min_size=1
)
KEYS = NAMES.filter(lambda key: not key.startswith(("sagemaker_", "-")))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_the_container_decodes_what_was_encoded(hyperparameters):
    assert decode(encode(hyperparameters)) == hyperparameters


@pytest.mark.parametrize("text", ["", " ", "1e3", "true", "null", '"q"', "a\nb", "$(rm -rf /)", "'", "日本", "\ud800"])
def test_a_string_arrives_byte_for_byte(text):
    assert decode(encode({"key": text})) == {"key": text}


def test_numpy_scalars_become_python_numbers():
    given = {
        "a": numpy.int64(3),
        "b": numpy.float32(0.5),
        "c": numpy.bool_(True),
        "d": [numpy.float64(0.1), {"x": numpy.int8(-1)}],
        "e": numpy.array(7),
    }
    assert decode(encode(given)) == {"a": 3, "b": 0.5, "c": True, "d": [0.1, {"x": -1}], "e": 7}


def test_nan_and_infinity_are_kept():
    back = decode(encode({"nan": math.nan, "inf": -math.inf}))
    assert math.isnan(back["nan"]) and back["inf"] == -math.inf


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (1, "write '1'"),
        (None, "NoneType"),
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a=b", "holds '='"),
        ("a\nb", "control character"),
        ("a\rb", "control character"),
        ("a\x1b[2Jb", "control character"),
        ("a\x85b", "control character"),
        ("a\u2028b", "control character"),
        ("a\ud800", "surrogate"),
        ("--lr", "write 'lr'"),
        ("-", "rename it"),
        ("sagemaker_program", "reserved"),
        ("sagemaker_", "reserved"),
        ("default_user_module_name", "reserved"),
        ("_tuning_objective_metric", "reserved"),
    ],
)
def test_a_key_that_cannot_be_an_argument_is_refused(key, words):
    with pytest.raises(InvalidArgument, match=words) as raised:
        encode({key: 1})
    assert raised.value.argument == f"hyperparameters[{key!r}]"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "is a set"),
        (b"x", "is a bytes"),
        (date(2026, 1, 2), "is a datetime.date"),
        (numpy.zeros(3), "is a numpy.ndarray"),
        ([{"x": {3}}], "holds a set and is a list"),
        ({(1, 2): 3}, "keys must be"),
        (object, "is a type"),
        ("a\0b", "NUL"),
    ],
)
def test_a_value_that_json_cannot_say_is_named_with_its_type(value, words):
    with pytest.raises(InvalidArgument, match=words) as raised:
        encode({"fine": 1, "lr": value})
    assert raised.value.argument == "hyperparameters['lr']"
    assert str(raised.value).startswith("hyperparameters['lr'] ")


def test_a_value_that_holds_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidArgument, match="Circular"):
        encode({"loop": loop})


def test_a_job_carries_at_most_a_hundred():
    many = {f"k{index}": "1" for index in range(99)}
    check_count({**many, "sagemaker_program": "1"})
    with pytest.raises(InvalidArgument, match="99 entries, and 2 more are added"):
        check_count({**many, "sagemaker_program": "1", "sagemaker_job_name": "1"})


def test_lengths_are_the_services_own_limit():
    long = encode({"k" * 256: "v" * 2498})
    assert len(json.dumps("v" * 2498)) == 2500
    check_service_limits(long)
    with pytest.raises(InvalidArgument, match="257 characters"):
        check_service_limits({"k" * 257: "1"})
    with pytest.raises(InvalidArgument, match="2501 characters"):
        check_service_limits({"k": "v" * 2501})
