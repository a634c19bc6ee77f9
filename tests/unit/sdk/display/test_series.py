"""How a metric becomes a curve of bounded size."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk.display import curve
from estimator_sdk.display.series import MOST_POINTS, Series

VALUES = st.lists(st.tuples(st.integers(0, 3), st.floats()), max_size=400)


def series_of(values):
    series = Series()
    for rank, value in values:
        series.add(rank, value)
    return series


@given(VALUES)
def test_every_finite_value_is_in_one_place_of_few(values):
    series = series_of(values)
    finite = [value for _, value in values if math.isfinite(value)]
    assert len(series.points) <= MOST_POINTS and max(series.points, default=0) < MOST_POINTS
    assert sum(point.count for point in series.points.values()) == len(finite)
    assert series.extremes == ((min(finite), max(finite)) if finite else None)
    assert (series.count, series.newest) == (len(values), series_of(values).newest) or any(
        math.isnan(value) for _, value in values
    )


@given(VALUES)
def test_a_curve_is_small_and_within_its_frame(values):
    drawn = curve.svg("<&", series_of(values))
    assert len(drawn) < 5000 and drawn.count("<svg") == drawn.count("</svg>")
    assert bool(drawn) is any(math.isfinite(value) for _, value in values)
    for path in re.findall(r' d="M([^"]*)"', drawn):
        for x, y in (point.split() for point in path.rstrip("Z").split("L")):
            assert 0 <= float(x) <= curve.WIDTH and 0 <= float(y) <= curve.HEIGHT


def test_the_values_of_all_ranks_at_a_step_are_one_place_with_its_mean():
    series = series_of([(rank, step + rank) for step in range(10) for rank in (0, 2)])
    assert [(point.low, point.mean, point.high) for point in series.points.values()] == [
        (step, step + 1, step + 2) for step in range(10)
    ]
    assert 'class="band"' in curve.svg("loss", series)


def test_ranks_that_agree_are_a_line_without_a_band():
    series = series_of([(rank, float(step)) for step in range(10) for rank in range(4)])
    assert 'class="band"' not in curve.svg("loss", series)


def test_a_long_curve_keeps_its_shape():
    series = series_of([(0, math.exp(-step / 3000)) for step in range(10_000)])
    means = [point.mean for _, point in sorted(series.points.items())]
    assert MOST_POINTS / 2 <= len(means) <= MOST_POINTS and means == sorted(means, reverse=True)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_newest_value_may_be_none_that_a_curve_has(value):
    series = series_of([(1, 2.0), (0, 1.0), (0, value)])
    assert (series.extremes, str(series.last)) == ((1.0, 2.0), str(value))
