"""How fast a job is, by what its ranks tell while it runs."""

import pytest

from estimator_sdk.estimator.trials.window import pace_of
from estimator_sdk.job.diagnosis.step_records import StepSample


def told(*samples):
    return [StepSample(*each) for each in samples]


def test_the_first_second_is_left_out():
    samples = {"rank": told((1, 0.5, 0.5), (10, 1.5, 0.6), (50, 5.5, 1.6))}
    pace = pace_of(samples, 4, 0)
    assert (pace.rate, pace.input) == (pytest.approx(10), pytest.approx(0.25))


def test_steps_that_come_before_are_left_out():
    """Of a pass that fills a cache, for one."""
    samples = told((10, 2.0, 1.5), (20, 4.0, 3.0), (60, 6.0, 3.1), (100, 8.0, 3.2))
    assert pace_of({"rank": samples[:3]}, 4, 20) is None
    pace = pace_of({"rank": samples}, 4, 20)
    assert (pace.rate, pace.input) == (pytest.approx(20), pytest.approx(0.05))


def test_it_is_not_known_before_all_ranks_have_made_steps_for_long_enough():
    samples = {("algo-1", 0): told((10, 1.0), (40, 5.0)), ("algo-1", 1): told((10, 1.0), (30, 4.0))}
    assert pace_of(samples, 4, 0) is None
    assert pace_of(samples, 3, 0).rate == pytest.approx(20 / 3)
    assert pace_of(samples, 3, 0).input is None


def test_a_few_long_steps_are_not_enough():
    assert pace_of({"rank": told((2, 2.0), (10, 20.0))}, 4, 0) is None
