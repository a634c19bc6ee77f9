"""The judge of the budget itself: it must be able to say no."""

from __future__ import annotations

import pytest

from .budget import Budget, judge

ENTRY = Budget({"GET": 10, "PUT": 4})


@pytest.mark.parametrize("counts", [{"GET": 10, "PUT": 4}, {"GET": 9, "PUT": 4}, {"GET": 10, "PUT": 2}])
def test_what_costs_as_much_or_a_little_less_keeps_to_its_budget(counts):
    assert judge("a fetch", counts, ENTRY) is None


@pytest.mark.parametrize(
    ("counts", "grown"),
    [
        ({"GET": 11, "PUT": 4}, "GET: 11 instead of 10"),
        ({"GET": 2, "PUT": 5}, "PUT: 5 instead of 4"),  # what falls elsewhere does not pay for it
        ({"GET": 10, "PUT": 4, "HEAD": 1}, "HEAD: 1 instead of 0"),
    ],
)
def test_what_grew_is_named(counts, grown):
    wrong = judge("a fetch", counts, ENTRY)
    assert wrong is not None and grown in wrong and wrong.startswith("a fetch costs more than its budget")


def test_a_big_fall_asks_for_a_lower_budget():
    wrong = judge("a fetch", {"GET": 6, "PUT": 4}, ENTRY)
    assert wrong is not None and "costs 10 where its budget is 14: lower the budget" in wrong


def test_what_has_no_budget_gets_one():
    assert "has no budget yet" in str(judge("a fetch", {"GET": 1}, None))


def test_slack_is_for_each_count():
    loose = Budget({"read": 100, "openat": 10}, slack=0.2)
    assert judge("a job", {"read": 120, "openat": 12}, loose) is None
    assert "openat: 13 instead of 10" in str(judge("a job", {"read": 100, "openat": 13}, loose))
