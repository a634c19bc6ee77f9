from pathlib import Path

import pytest
from estimator_container.contract.names import Layout
from estimator_container.failures.outcome import Outcome
from estimator_container.failures.verdict import Verdict

USERS = Verdict("exception", "rank 1 failed", "algo-2", 1, 1, None, "Traceback…", (0,))
OURS = Verdict("host_lost", "algo-2 is gone", "algo-2")


@pytest.fixture
def layout(tmp_path):
    return Layout(str(tmp_path))


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome("completed"), 0),
        (Outcome("failed", USERS), 1),
        (Outcome("failed", OURS), 2),
        (Outcome("failed"), 2),
        (Outcome("stopped"), 143),
    ],
)
def test_the_exit_code_is_that_of_the_contract(outcome, code):
    assert outcome.exit_code == code


@pytest.mark.parametrize(
    "outcome", [Outcome("completed"), Outcome("stopped"), Outcome("failed", USERS), Outcome("failed", OURS)]
)
def test_an_outcome_comes_back_from_its_fields(outcome):
    assert Outcome.from_fields(*outcome.to_fields()) == outcome


@pytest.mark.parametrize(
    "fields", [("failed", ""), ("failed", "{}"), ("failed", "[]"), ("ended", USERS.to_json()), ("", "")]
)
def test_other_fields_are_a_value_error(fields):
    with pytest.raises(ValueError):
        Outcome.from_fields(*fields)


def test_success_leaves_an_empty_marker_and_no_failure(layout):
    Outcome("completed").write(layout)
    assert names(layout.output) == ["success"]
    assert Path(layout.success).read_bytes() == b""


def test_a_failure_is_left_for_people_and_for_programs(layout):
    Outcome("failed", USERS).write(layout)
    assert Path(layout.failure).read_text() == USERS.failure_text()
    assert Verdict.from_json(Path(layout.verdict).read_text()) == USERS
    assert not Path(layout.success).exists()


def test_a_failure_file_of_the_script_is_kept(layout):
    Path(layout.output).mkdir()
    Path(layout.failure).write_text("the script's own words")
    Outcome("failed", USERS).write(layout)
    assert Path(layout.failure).read_text() == "the script's own words"
    assert Path(layout.verdict).exists()


def test_text_that_is_no_unicode_can_be_written(layout):
    Outcome("failed", Verdict("exit_code", "\ud800 failed")).write(layout)
    assert "failed" in Path(layout.failure).read_text()


def test_a_job_that_was_stopped_leaves_neither(layout):
    Outcome("stopped").write(layout)
    assert names(layout.output) == []


def test_where_the_base_directory_was_removed_none_is_made_again(tmp_path):
    Outcome("failed", USERS).write(Layout(str(tmp_path / "hosts" / "algo-2")))
    assert names(tmp_path) == []
