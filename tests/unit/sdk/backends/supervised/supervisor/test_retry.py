import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.supervised.supervisor.retry import is_worth_another

OF_THE_PLATFORM = ["host_lost", "host_missing", "frozen", "platform"]
OTHERS = ["exit_code", "exception", "signal", "configuration", "requirements", "checkpoints", "toolkit", "unheard_of"]


@pytest.mark.parametrize("kind", OF_THE_PLATFORM)
@pytest.mark.parametrize(
    ("attempt", "limit", "again"), [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False)]
)
def test_what_the_platform_broke_is_tried_again_so_many_times(kind, attempt, limit, again):
    assert is_worth_another(Verdict(kind, "gone"), attempt, limit) == again


@pytest.mark.parametrize("kind", OTHERS)
def test_what_the_script_broke_it_would_break_again(kind):
    assert not is_worth_another(Verdict(kind, "failed"), 1, 30)
