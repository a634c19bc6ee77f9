"""What follows from the rates of a script that was run with something left out."""

import pytest

from estimator_sdk.job.diagnosis.comparison import Comparison, Way
from estimator_sdk.job.diagnosis.diagnosis import Diagnosis

REAL = Diagnosis("train-1", "Stopped", None, (), "too little has been seen", (), ())


def words(**rates):
    return Comparison({Way[name.upper()]: each for name, each in rates.items()}, 4, REAL).lines()


def test_what_input_costs_is_the_gap_to_the_rate_with_the_first_batch_replayed():
    said = words(real=[5.8, 5.9, 5.7], replayed=[10.0, 10.2, 9.9])
    assert said[0] == "42 % (40 to 44) of the rate with the first batch replayed is lost to input."
    assert "as it is                   5.8 steps/s  (5.7 to 5.9, 3 runs)" in said
    assert "first batch replayed        10 steps/s  (9.9 to 10.2, 3 runs)" in said


def test_a_gap_that_the_rates_do_not_show_each_time_is_none():
    said = words(real=[9.8, 10.2, 9.6], replayed=[10.1, 10.3, 10.0])
    assert said[0] == "Not input bound: with the first batch replayed there is nothing to gain above 7 %."


def test_a_gap_below_two_per_cent_is_none():
    said = words(real=[9.90, 9.91], replayed=[10.0, 10.01])
    assert said[0] == "Not input bound: with the first batch replayed there is nothing to gain above 2 %."


def test_checkpoints_and_other_ranks_have_a_gap_too():
    said = words(real=[8.0], replayed=[8.0], no_checkpoints=[10.0], one_rank=[16.0])
    assert "20 % (20 to 20) of the rate without checkpoints is lost to writing them." in said
    assert "Scaling: of 4 ranks, each makes 50 % of the steps that one makes alone." in said


def test_json_has_the_rates_and_the_gaps():
    document = Comparison({Way.REAL: [6.0], Way.REPLAYED: [10.0]}, 1, REAL).to_json()
    assert document["rates"] == {"real": [6.0], "replayed": [10.0]}
    assert document["gaps"] == {"replayed": {name: pytest.approx(0.4) for name in ("share", "least", "most")}}
    assert document["real"]["job"] == "train-1"
