import threading

import pytest
from estimator_container.data.reading.ahead import Ahead, size_of

from tests.waiting import SECONDS


class Pieces:
    """Counts what was taken of it, and says when it stands still."""

    def __init__(self, count):
        self.count, self.taken = count, 0
        self.went_on = threading.Semaphore(0)

    def __iter__(self):
        for each in range(self.count):
            self.taken += 1
            self.went_on.release()
            yield each


@pytest.mark.parametrize(("count", "limit", "held"), [(3, 1 << 30, 3), (100, 50, 5), (100, 5, 1)])
def test_no_more_is_held_than_may_be(count, limit, held):
    pieces = Pieces(20)
    ahead = Ahead(iter(pieces), count, limit, lambda _: 10)
    for _ in range(held + 1):  # the last one waits for room
        assert pieces.went_on.acquire(timeout=SECONDS)
    assert not pieces.went_on.acquire(timeout=0.05)
    assert [next(ahead), pieces.went_on.acquire(timeout=SECONDS), pieces.taken] == [0, True, held + 2]
    assert list(ahead) == list(range(1, 20))
    assert list(ahead) == []


def test_what_went_wrong_is_raised_in_its_turn():
    def pieces():
        yield 1
        raise ValueError("no such digit")

    ahead = Ahead(pieces(), 2, 100, lambda _: 1)
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="no such digit"):
            next(ahead)


def test_nothing_more_is_read_once_it_is_closed():
    pieces = Pieces(20)
    ahead = Ahead(iter(pieces), 1, 100, lambda _: 1)
    next(ahead)
    ahead.close()
    reading = [each for each in threading.enumerate() if each.name == "estimator-data"]
    for each in reading:
        each.join(SECONDS)
        assert not each.is_alive()
    assert pieces.taken < 20


def test_the_size_of_a_batch_is_that_of_its_arrays_and_bytes():
    assert size_of([{"jpg": b"12345", "cls": "7"}, (bytearray(10), memoryview(b"123"), 7)]) == 6 + 13 + 32
