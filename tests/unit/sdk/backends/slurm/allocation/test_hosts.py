import pytest
from estimator_container.contract.names import EXIT_STOPPED

from estimator_sdk.backends.slurm.allocation.hosts import _code_of_task


@pytest.mark.parametrize("code", [0, 1, 7, 127, 128])
def test_the_exit_code_of_a_task_is_that_of_its_step(code):
    assert _code_of_task(code) == code


@pytest.mark.parametrize(("code", "signum"), [(137, 9), (139, 11), (134, 6)])
def test_a_task_that_a_signal_ended_has_the_signals_negative_number(code, signum):
    assert _code_of_task(code) == -signum


def test_a_host_that_was_told_to_stop_says_so_itself():
    assert _code_of_task(EXIT_STOPPED) == EXIT_STOPPED


def test_a_signal_that_ended_srun_itself_keeps_its_number():
    assert _code_of_task(-9) == -9
