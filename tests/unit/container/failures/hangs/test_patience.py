import pytest
from estimator_container.failures.hangs.patience import HangPatience


def learnt(*times):
    patience = HangPatience(floor=30.0, ceiling=1800.0)
    for now in times:
        patience.progress(now)
    return patience.learnt


@pytest.mark.parametrize("times", [(), (5.0,)])
def test_nothing_is_learnt_before_there_was_a_silence_between_two_signs_of_progress(times):
    assert learnt(*times) is None


@pytest.mark.parametrize(
    ("times", "bound"),
    [((0.0, 1.0), 30.0), ((0.0, 20.0), 100.0), ((0.0, 20.0, 21.0, 22.0), 100.0), ((0.0, 1.0, 601.0), 1800.0)],
)
def test_the_bound_is_five_times_the_longest_silence_between_its_limits(times, bound):
    assert learnt(*times) == bound
