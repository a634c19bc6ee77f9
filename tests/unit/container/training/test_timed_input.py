"""What a script may say of its waiting by itself."""

import pytest
from estimator_container import training
from estimator_container.training.page import CHECKPOINT, COMMUNICATION, INPUT


@pytest.fixture
def account(account_of):
    return account_of(training)


def test_each_batch_is_waited_for_and_so_is_the_end(account):
    for batch in training.timed_input(iter("ab")):
        account.append(batch)
    assert account == [INPUT, "end", "a", INPUT, "end", "b", INPUT, "end"]


def test_an_error_of_the_input_is_the_scripts(account):
    def fails():
        raise OSError("no such file")
        yield

    with pytest.raises(OSError, match="no such file"):
        list(training.timed_input(fails()))
    assert account == [INPUT, "end"]


def test_checkpoints_and_communication_can_be_told(account):
    with training.checkpointing():
        pass
    with pytest.raises(KeyError), training.communicating():
        raise KeyError
    assert account == [CHECKPOINT, "end", COMMUNICATION, "end"]


def test_outside_of_a_job_nothing_changes(monkeypatch):
    monkeypatch.delenv("SM_OUTPUT_DIR", raising=False)
    training.clock_of_rank.cache_clear()
    assert list(training.timed_input("ab")) == ["a", "b"]
    with training.checkpointing(), training.communicating():
        pass
