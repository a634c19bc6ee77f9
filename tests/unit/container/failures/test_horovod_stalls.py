"""What is read out of the words of Horovod's stall inspector."""

import time

from estimator_container.failures.horovod_stalls import END_SECONDS, Lasting, Stall, last_in, left_without

# As Horovod 0.28.1 wrote it in a job of 3 ranks.
HEAD = (
    "[2026-11-23 18:30:01.000123: W /tmp/horovod/common/stall_inspector.cc:107] One or more tensors were submitted to "
    "be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 "
    "seconds. This may indicate that different ranks are trying to submit different tensors or that only subset of "
    "ranks is submitting tensors, which will cause deadlock. \n"
)
SAID = f"{HEAD}Missing ranks:\n1: [a, b.c]\n2: [a, b, c, d, e, f ...]\n".encode()
ENDS = (
    HEAD.replace(": W ", ": E ") + "Missing ranks:\n1!: [a]\n"
    'One or more rank (marked by "!") is stalled for longer than 120 seconds. Will shutdown.\n'
).encode()


def test_ranks_and_tensors_are_those_that_are_named():
    assert last_in(b"epoch 1\n" + SAID + b"more\n") == Stall(60, {1: ("a", "b.c"), 2: ("a", "b", "c", "d", "e", "f")})


def test_the_last_of_several_counts_and_the_end_of_its_line_may_be_missing():
    assert last_in(SAID + ENDS.rstrip(b"\n")) == Stall(60, {1: ("a",)}, ends_the_world=True)
    assert last_in(SAID.rstrip(b"\n")) == last_in(SAID)


def test_other_words_tell_of_none():
    assert last_in(b"Missing ranks:\n1: [a]\n") is None


def test_what_is_left_is_what_somebody_else_has_written():
    assert left_without(SAID + ENDS + SAID) == b""
    assert left_without(b"epoch 1\n" + SAID + b"epoch 2\n") == b"epoch 1\nepoch 2\n"


def test_it_travels_as_it_is():
    stall = Stall(60, {1: ("a", "b"), 3: ("c",)}, ends_the_world=True)
    assert Stall.from_json(stall.to_json()) == stall


def test_it_is_over_when_horovod_does_not_say_so_again(monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lasting = Lasting()
    assert lasting.stall is None
    lasting.tell(Stall(60, {1: ("a",)}))
    now += 120
    assert lasting.stall is not None
    now += 2
    assert lasting.stall is None
    lasting.tell(Stall(1, {1: ("a",)}, ends_the_world=True))  # its last word
    now += END_SECONDS - 1
    assert lasting.stall is not None
    now += 2
    assert lasting.stall is None
