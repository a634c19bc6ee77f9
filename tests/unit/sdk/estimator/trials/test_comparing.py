"""What is predicted of advice once all runs are over."""

import dataclasses

import pytest

from estimator_sdk.estimator.trials.comparing import Runs
from estimator_sdk.job.diagnosis.comparison import Way
from estimator_sdk.job.diagnosis.trials import Trial


def test_advice_is_foretold_by_the_median_of_the_other_runs_and_keeps_its_own_rates():
    """By the first runs alone it would be twice as fast; the second ones were not disturbed."""
    first, other = Trial("a", "", 2.0, ("a",)), Trial("b", "", 1.5, ("b",))
    rates = {Way.REAL: [5.0, 5.0], Way.REPLAYED: [10.0, 20.0], first: [14.0, 15.0], other: [7.0]}
    runs = Runs(lambda *_: None, 4.0, 2, print, rates=rates, waits={first: [0.1]})
    assert runs._gain_replayed() == pytest.approx(3.0)
    again = dataclasses.replace(first, predicted=runs._gain_replayed())
    assert runs._foretold([Way.REAL, first, other], [again]) == [Way.REAL, again, other]
    assert (runs.rates[again], runs.waits[again], runs.rates[other]) == ([14.0, 15.0], [0.1], [7.0])
    assert first not in runs.rates
