import json

import pytest
from estimator_container.contract.hyperparameters import decode, is_reserved, to_arguments
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.runtime.errors import ConfigurationError


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("hello", "hello"),
        ("1e3", 1000.0),
        ('"q"', "q"),
        ('"1e3"', "1e3"),
        ("1", 1),
        ("0.1", 0.1),
        ("true", True),
        ("True", "True"),
        ("null", None),
        ("None", "None"),
        ("", ""),
        (" ", " "),
        ('""', ""),
        ("[1, 2]", [1, 2]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("'q'", "'q'"),
        ('"not closed', '"not closed'),
        ("1 2", "1 2"),
        ("s3://bucket/key", "s3://bucket/key"),
        ("[" * 2500, "[" * 2500),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5000, None),
    ],
)
def test_a_string_is_the_json_that_it_holds_or_else_itself(raw, value):
    if raw == "9" * 5000:
        # How many digits an interpreter takes depends on its version; nothing may be lost in either case.
        assert decode({"key": raw})["key"] in (raw, pow(10, 5000) - 1)
    else:
        assert decode({"key": raw}) == {"key": value}


@pytest.mark.parametrize(
    "text", ["", "a b", "'", '"', "a\nb", "$(rm -rf /)", "`id`", "日本", "1e3", "null", "\\", "-x", "--x"]
)
def test_what_was_passed_as_a_string_is_one_argument_byte_for_byte(text):
    assert to_arguments(decode({"key": json.dumps(text)})) == ["--key", text]


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        (True, "True"),
        (False, "False"),
        (None, ""),
        (1, "1"),
        (0.1, "0.1"),
        (1000.0, "1000.0"),
        (1e-05, "1e-05"),
        ("a b", "a b"),
        ([1, "a", None, True], "[1, 'a', None, True]"),
        ([], "[]"),
        ({"b": 1, "a": "x"}, "a=x,b=1"),
        ({}, ""),
        ({"a": {"b": 1}}, "a={'b': 1}"),
    ],
)
def test_a_value_becomes_the_argument_that_the_peer_package_makes_of_it(value, argument):
    assert to_arguments({"key": value}) == ["--key", argument]


def test_keys_are_sorted_by_plain_string_order_and_stay_as_they_are():
    keys = ["b", "a-b", "a_b", "B", "Lr", "lr", "10", "é"]
    arguments = to_arguments(dict.fromkeys(keys, 0))
    assert arguments[::2] == ["--10", "-B", "--Lr", "--a-b", "--a_b", "-b", "--lr", "-é"]


def test_no_hyperparameters_are_no_arguments():
    assert to_arguments({}) == []


@pytest.mark.parametrize(
    "name", ["sagemaker_program", "sagemaker_", "sagemaker_new", "default_user_module_name", "_tuning_objective_metric"]
)
def test_a_reserved_name_never_reaches_the_script(name):
    assert is_reserved(name)
    assert Hyperparameters.read({name: "a", "lr": 2}).script == {"lr": 2}


@pytest.mark.parametrize("name", ["sagemaker", "Sagemaker_x", "my_sagemaker_x", "tuning_objective_metric", "lr"])
def test_any_other_name_does(name):
    assert Hyperparameters.read({name: 1}).script == {name: 1}


@pytest.mark.parametrize(
    "hyperparameters",
    [{"key": "a\0b"}, {"a\0b": 1}, {"key": {"a": "\0"}}, {"key": "\ud800"}, {"key": {"\udfff": 1}}],
)
def test_text_that_no_argument_can_carry_is_refused_by_name(hyperparameters):
    (name,) = hyperparameters
    with pytest.raises(
        ConfigurationError, match="hyperparameter .* no argument can carry; pass it as a file"
    ) as refused:
        to_arguments(hyperparameters)
    assert repr(name) in str(refused.value)
