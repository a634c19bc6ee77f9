import inspect
from dataclasses import dataclass

import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.values.arguments import named_arguments


@named_arguments
@dataclass
class Point:
    x: int
    label: str = ""


@named_arguments
@dataclass(kw_only=True)
class Named:
    colour: str = "red"


class Child(Named):
    pass


def test_right_arguments_are_taken():
    assert (Point(1, label="a").label, Named(colour="blue").colour, Child().colour) == ("a", "blue", "red")


def test_an_unknown_argument_is_named_with_the_nearest():
    with pytest.raises(InvalidArgument, match=r"^Point has no argument 'lable'; did you mean 'label'\?") as raised:
        Point(1, lable="a")  # type: ignore[call-arg]
    assert raised.value.argument == "lable"


def test_the_error_names_the_class_that_was_called():
    with pytest.raises(InvalidArgument, match=r"^Child has no argument 'color'"):
        Child(color="blue")  # type: ignore[call-arg]


def test_too_many_positional_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="takes no positional arguments, but got 1; pass them by name"):
        Named("blue")  # type: ignore[misc]
    with pytest.raises(InvalidArgument, match="takes 2 positional arguments, but got 3"):
        Point(1, "a", 3)  # type: ignore[call-arg]


def test_the_signature_is_the_dataclass_s_own():
    assert list(inspect.signature(Point).parameters) == ["x", "label"]
