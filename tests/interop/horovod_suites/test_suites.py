"""What the program makes of Horovod's tests: which fit the list of known failures, and which rank counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interop.horovod_suites import known, on_rank, suites
from tests.interop.horovod_suites.world import World

LISTED = known.Known("test_a", ("lists", "also"), "a reason", {"keras": "3"}, passes_reworded=True)
WITH_KERAS_3 = {"keras": "3.15.1"}


def test_failures_that_are_listed_are_no_surprise():
    expected = known.reasons([LISTED], "test_a", WITH_KERAS_3, reworded=False)
    assert expected == {"lists": "a reason", "also": "a reason"}
    assert known.surprises({"lists": "failed", "also": "missing", "other": "passed"}, expected) == []


@pytest.mark.parametrize(
    ("suite", "versions", "reworded"),
    [("test_b", WITH_KERAS_3, False), ("test_a", {"keras": "2.15.0"}, False), ("test_a", WITH_KERAS_3, True)],
    ids=["another suite", "another Keras", "reworded"],
)
def test_an_entry_holds_for_its_suite_and_packages_and_words(suite, versions, reworded):
    assert known.reasons([LISTED], suite, versions, reworded) == {}


@pytest.mark.parametrize("how", known.BAD)
def test_a_failure_that_is_not_listed_is_told(how):
    (said,) = known.surprises({"new": how}, {})
    assert said == f"new {how}, and known.json does not list it"


@pytest.mark.parametrize("how", ["passed", "skipped"])
def test_a_listed_test_that_does_not_fail_is_told(how):
    (said,) = known.surprises({"old": how}, {"old": "a reason"})
    assert said == f"old {how}, and known.json lists it as failing"


def test_a_listed_test_that_is_not_there_is_told_unless_only_some_tests_were_asked_for():
    assert known.surprises({"other": "passed"}, {"old": "a reason"}) == [
        "known.json lists old, and there is no such test"
    ]
    assert known.surprises({"other": "passed"}, {"old": "a reason"}, selected=True) == []


def test_a_test_that_never_ends_is_left_out_only_where_it_does_not():
    entry = known.Known("test_a", ("waits",), "a reason", {}, passes_reworded=False, endless_beyond=2)
    assert known.endless([entry], "test_a", 4) == {"waits": "a reason"}
    assert known.endless([entry], "test_a", 2) == known.endless([entry], "test_b", 4) == {}
    assert known.reasons([entry], "test_a", {}, reworded=False) == {}


def test_a_suite_of_which_nothing_has_run_is_told():
    assert known.surprises({}, {}) == ["no test has run"]


def test_each_test_is_listed_once_and_has_a_reason():
    listed = known.read()
    tests = [(each.suite, test, tuple(each.packages.items())) for each in listed for test in each.tests]
    assert len(tests) == len(set(tests)) > 0
    assert all(each.reason for each in listed)
    assert {each.suite for each in listed} <= {suite for of_one in suites.SUITES.values() for suite in of_one}


TESTS = """
import os, pytest
RANK = int(os.environ["RANK"])

def test_passes(): pass
def test_fails_on_one_rank(): assert RANK == 0, "rank 1 fails"
def test_is_skipped(): pytest.skip("no GPU")
if RANK == 0:
    def test_is_there_on_one_rank(): pass
"""


def test_a_test_passes_where_all_ranks_pass_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    code = tmp_path / "code"
    (code / "parallel").mkdir(parents=True)
    (code / "parallel" / "test_a.py").write_text(TESTS)
    shutil.copy(Path(on_rank.__file__), code)
    result = suites.run(code, "test_a", World(2), [])
    assert result.completed and result.versions["horovod"].startswith("0.28.1")
    assert result.outcomes == {
        "test_passes": "passed",
        "test_fails_on_one_rank": "failed",
        "test_is_skipped": "skipped",
        "test_is_there_on_one_rank": "missing",
    }
    text, fits = suites.report("test_a", result, [], reworded=False, selected=False)
    assert not fits
    assert "1 passed, 1 skipped, 1 failed, 1 missing" in text and "1 skipped: no GPU" in text
    assert "test_fails_on_one_rank: AssertionError: rank 1 fails" in text
