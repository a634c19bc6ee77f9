"""What is said of training that is measured, by turns in which nothing measures."""

import math

import pytest

from benchmarks.metrics import telemetry


@pytest.mark.parametrize(
    ("times", "mean", "interval"),
    [
        ([1.005, 1.005, 1.005], "+0.50 %", "+0.50 % to +0.50 %"),
        ([2.0, 0.5], "+0.00 %", "-289.05 % to +74.30 %"),
    ],
)
def test_the_interval_is_that_of_the_ratios_whichever_way_they_go(monkeypatch, capsys, times, mean, interval):
    monkeypatch.setattr(telemetry, "_turns", [-math.log(each) for each in times])
    (table,) = telemetry.tables()
    assert table.rows == ((str(len(times)), mean, interval),)
    assert interval in capsys.readouterr().out
