import struct

import pytest
from estimator_container.runtime.wire import MAX_MESSAGE, BadMessage, Unpacker, pack
from hypothesis import given
from hypothesis import strategies as st

# What can stand in an argument or a variable: any bytes but NUL, as Python decodes them.
FIELDS = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
MESSAGES = st.lists(st.lists(FIELDS, min_size=1, max_size=5), max_size=5)


@given(MESSAGES, st.integers(1, 30))
def test_messages_arrive_whole_and_in_order_however_they_are_cut(messages, size):
    stream = b"".join(map(pack, messages))
    unpacker = Unpacker()
    received = []
    for at in range(0, len(stream), size):
        received += unpacker.feed(stream[at : at + size])
    assert received == messages


@pytest.mark.parametrize("fields", [[""], ["", ""], ["a", ""], ["", "a"], ["two\nlines", "=", "é日", "\udcff"]])
def test_empty_and_strange_fields_keep_their_places(fields):
    assert list(Unpacker().feed(pack(fields))) == [fields]


def test_a_field_with_a_nul_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        pack(["fine", "not\0fine"])


def test_a_message_without_fields_is_refused_because_it_would_arrive_with_one():
    with pytest.raises(ValueError, match="at least one field"):
        pack([])


def test_a_message_over_the_limit_is_refused_by_its_length_alone():
    unpacker = Unpacker(limit=10)
    assert list(unpacker.feed(pack(["0123456789"]))) == [["0123456789"]]
    with pytest.raises(BadMessage, match="11 bytes; at most 10"):
        list(unpacker.feed(struct.pack("<I", 11)))


def test_the_limit_may_be_raised_between_two_messages_that_came_together():
    unpacker = Unpacker(limit=10)
    received = []
    for message in unpacker.feed(pack(["short"]) + pack(["x" * 100])):
        received.append(message)
        unpacker.limit = MAX_MESSAGE
    assert received == [["short"], ["x" * 100]]


def test_nothing_is_lost_of_messages_that_nobody_asked_for_yet():
    unpacker = Unpacker()
    unpacker.feed(pack(["first"]))
    assert list(unpacker.feed(pack(["second"]))) == [["first"], ["second"]]
