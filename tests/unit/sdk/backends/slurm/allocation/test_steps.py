import pytest
from estimator_container.contract.names import EXIT_STOPPED

from estimator_sdk.backends.slurm.allocation.steps import code_of_task, was_not_launched


@pytest.mark.parametrize("code", [0, 1, 7, 127, 128])
def test_the_exit_code_of_a_task_is_that_of_its_step(code):
    assert code_of_task(code, True) == code


@pytest.mark.parametrize(("code", "signum"), [(137, 9), (139, 11), (134, 6)])
def test_a_task_that_a_signal_ended_has_the_signals_negative_number(code, signum):
    assert code_of_task(code, True) == -signum


def test_a_host_that_was_told_to_stop_says_so_itself():
    assert code_of_task(EXIT_STOPPED, False) == EXIT_STOPPED


def test_a_step_that_srun_says_nothing_wrong_of_was_lost_unless_its_host_has_succeeded():
    assert code_of_task(0, False) == -9


def test_only_what_srun_says_since_the_step_began_counts(tmp_path):
    log, before = tmp_path / "log", b"srun: error: Task launch for StepId=1.1 failed on node n2\n"
    log.write_bytes(before)
    assert was_not_launched(log, 0) and not was_not_launched(log, len(before))
    log.write_bytes(before + b"srun: error: Unable to create step for job 1: Requested node is not available\n")
    assert was_not_launched(log, len(before))
    assert not was_not_launched(tmp_path / "none", 0)


def test_a_signal_that_ended_srun_itself_keeps_its_number():
    assert code_of_task(-9, False) == -9
