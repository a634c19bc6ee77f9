import pytest
from estimator_container.mesh.handshake import NONCE_BYTES, Seal, code, new_nonce, same, session_key
from hypothesis import given
from hypothesis import strategies as st

KEY = b"k" * 32
FIELDS = st.lists(st.text(max_size=5), max_size=4)


def pair():
    return Seal(KEY, "leader", "worker"), Seal(KEY, "worker", "leader")


@given(FIELDS, FIELDS)
def test_two_lists_of_fields_have_one_code_only_if_they_are_equal(one, other):
    assert (code(KEY, *one) == code(KEY, *other)) == (one == other)


def test_a_code_depends_on_where_one_field_ends_and_the_next_begins():
    assert (
        len(
            {code(KEY, "ab", "c"), code(KEY, "a", "bc"), code(KEY, "abc"), code(KEY, "1:a", "bc"), code(KEY, "abc", "")}
        )
        == 5
    )


def test_a_code_depends_on_the_secret():
    assert code(b"one", "x") != code(b"other", "x")


def test_every_random_number_is_new_and_long():
    numbers = {new_nonce() for _ in range(100)}
    assert len(numbers) == 100
    assert {len(number) for number in numbers} == {2 * NONCE_BYTES}


@pytest.mark.parametrize("other", ["", "A", "aa", "é", "\udcff", "?"])
def test_codes_of_any_text_can_be_compared(other):
    assert same("a", "a")
    assert not same("a", other)


def test_both_ends_reach_one_session_key_and_other_numbers_give_another():
    assert session_key(KEY, "w", "l") == session_key(KEY, "w", "l")
    assert len({session_key(KEY, *numbers) for numbers in [("w", "l"), ("l", "w"), ("wl", ""), ("w", "m")]}) == 4
    assert len(session_key(KEY, "w", "l")) == 32


@given(st.lists(FIELDS.map(tuple), max_size=6))
def test_sealed_messages_open_in_their_order_in_both_directions(messages):
    leader, worker = pair()
    for fields in messages:
        assert worker.unwrap(list(leader.wrap(fields))) == list(fields)
        assert leader.unwrap(list(worker.wrap(fields))) == list(fields)


def test_an_altered_message_does_not_open():
    leader, worker = pair()
    *fields, given_code = leader.wrap(("end", "completed"))
    assert worker.unwrap([*fields[:1], "failed", given_code]) is None


@pytest.mark.parametrize("message", [[""], ["end"], ["end", ""], ["end", "0" * 64]])
def test_a_message_without_the_right_code_does_not_open(message):
    _, worker = pair()
    assert worker.unwrap(message) is None


def test_a_message_does_not_open_twice_nor_out_of_order():
    leader, worker = pair()
    first, second = leader.wrap(("go",)), leader.wrap(("stop",))
    assert worker.unwrap(list(second)) is None
    leader, worker = pair()
    first = leader.wrap(("go",))
    assert worker.unwrap(list(first)) == ["go"]
    assert worker.unwrap(list(first)) is None


def test_a_message_that_is_sent_back_does_not_open():
    leader, _ = pair()
    assert leader.unwrap(list(leader.wrap(("go",)))) is None


def test_a_message_of_another_session_does_not_open():
    _, worker = pair()
    assert worker.unwrap(list(Seal(b"other" * 6, "leader", "worker").wrap(("go",)))) is None
