import pytest

from estimator_sdk.values.naming import nearest, shown, size, some, suggestion


@pytest.mark.parametrize(
    ("word", "expected"),
    [("instance_cout", "instance_count"), ("INSTANCE_COUNT", "instance_count"), ("zzz", None), ("", None)],
)
def test_nearest_finds_what_was_meant_or_nothing(word, expected):
    assert nearest(word, ["instance_count", "role"]) == expected


def test_a_suggestion_names_the_nearest_and_all():
    assert suggestion("rol", ["role", "image_uri"]) == "did you mean 'role'? Known: image_uri, role."


def test_a_suggestion_leaves_out_a_long_list():
    names = [f"ml.c5.{size}xlarge" for size in range(100)]
    assert suggestion("ml.c5.7xlarg", names) == "did you mean 'ml.c5.7xlarge'?"
    assert "100" in suggestion("zzz", names)


def test_a_suggestion_from_nothing_says_so():
    assert suggestion("a", []) == "none is known."


class Unspeakable:
    def __repr__(self) -> str:
        raise AttributeError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "'a'"),
        (10**4300, "a number of about 4,301 digits"),
        (-(10**5000), "a number of about 5,001 digits"),
        ({"a": [10**5000]}, "a dict that Python cannot write out"),
        (Unspeakable(), "a Unspeakable that Python cannot write out"),
    ],
    ids=["text", "a long number", "a negative one", "what holds one", "what has no words"],
)
def test_whatever_a_value_is_a_sentence_can_quote_it(value, words):
    assert shown(value) == words
    assert suggestion(value, ["no such name"]) == "Known: no such name."


def test_of_many_names_a_sentence_has_the_first():
    assert some(["a", "b"]) == "a, b"
    assert some([str(number) for number in range(100)]) == "0, 1, 2, 3, 4 and 95 more"


@pytest.mark.parametrize(
    ("count", "words"), [(999, "999 B"), (1000, "1.0 kB"), (2.5e6, "2.5 MB"), (2.5e12, "2.5 TB"), (2.5e15, "2500.0 TB")]
)
def test_a_size_is_in_the_largest_unit_that_it_has_one_of(count, words):
    assert size(count) == words
