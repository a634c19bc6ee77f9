"""Which logs are folded into one."""

from __future__ import annotations

import pytest

from estimator_sdk.display import groups
from estimator_sdk.display.log import Log


def log(rank, *lines, host="algo-1", source="rank"):
    made = Log(source, host, rank)
    for line in lines:
        made.add("stdout", line.encode())
    return made


def titles(*logs):
    return [group.title for group in groups.grouped(logs)]


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("step 1 loss 0.5", "step 12 loss 1.5e-05", True),
        (" 45%|####      | 45/100 [00:03<00:04, 12.3it/s]", "  5%|          | 5/100 [00:01<00:09, 9.1it/s]", True),
        ("loss 0.5", "loss nan", False),
        ("tensor at 0x7f3a", "tensor at 0xdead", True),
        ("hello", "ValueError: no such digit", False),
    ],
)
def test_lines_agree_that_differ_in_their_numbers_only(first, second, agree):
    assert titles(log(0, first), log(1, second)) == (["ranks 0–1"] if agree else ["rank 0", "rank 1"])


def test_a_rank_that_is_behind_agrees_with_the_others():
    (group,) = groups.grouped([log(rank, *["step 1"] * (2 if rank == 3 else 9 + rank)) for rank in range(6)])
    assert (group.lines, group.behind.name) == ("2 to 14 lines", "rank 3")


def test_ranks_are_not_one_with_hosts():
    toolkits = [log(None, "a", host=f"algo-{number}", source="toolkit") for number in range(1, 6)]
    assert titles(log(0, "a"), log(1, "a"), log(None, "a", source="script"), *toolkits) == [
        "ranks 0–1",
        "algo-1",
        "algo-1 toolkit, algo-2 toolkit, algo-3 toolkit and 2 more",
    ]


def test_many_that_all_differ_are_one_group_beside_the_largest():
    letters = "abcdefghijklmnopqrstuvwxyz"
    found = groups.grouped(
        [log(number, letter) for number, letter in enumerate(letters)] + [log(30, "z"), log(31, "z")]
    )
    assert len(found) == groups.MOST_GROUPS
    assert "ranks 25, 30–31" in [group.title for group in found] and not found[-1].agree
    assert sum(len(group.logs) for group in found) == 28


def test_a_log_of_very_many_kinds_is_like_any_other_such():
    prose = [
        "".join(chr(97 + (rank * 7 + each) % 26) for each in range(number))
        for rank in (0, 1)
        for number in range(1, 60)
    ]
    assert titles(log(0, *prose[:59]), log(1, *prose[59:])) == ["ranks 0–1"]


def test_a_kind_is_kept_when_its_line_is_no_longer():
    first, second = log(0, "begin"), log(1, "other")
    for each in (first, second):
        each.kinds()
        for _ in range(200):
            each.add("stdout", b"step")
    assert titles(first, second) == ["rank 0", "rank 1"]
