"""What is said of an example's input, by the steps that its ways have made in turns of their own."""

from pathlib import Path

import pytest

from benchmarks import input_gap
from benchmarks.harness import Extent
from benchmarks.input_gap import REAL, REPLAYED, Example, InputGap, Run
from benchmarks.paces import Pace, PacedJob


def test_only_a_ways_own_turns_count_and_only_whole_steps():
    job = PacedJob(None, Path())
    for begun in (0.0, 4.0, 8.0, 12.0):
        job.clock.add(begun, begun + 1)
    job.ends += [(20, 0.75), (30, 4.5), (70, 12.5)]
    job.waits += [(0.1, 0.5), (0, 0)]
    assert job.paces() == [Pace(pytest.approx(10 / 0.75), pytest.approx(0.2)), Pace(pytest.approx(40 / 2), None)]


def test_the_table_shows_how_each_way_scales_and_what_share_it_reaches():
    example = Example("digits", "digits.py", {"kept": Run(), "in parallel": Run(most_ranks=1)}, "kept")
    rates = {
        1: {REAL: [50.0, 40.0, 60.0], "kept": [100.0], "in parallel": [75.0], REPLAYED: [100.0]},
        4: {REAL: [15.0], "kept": [49.5], REPLAYED: [50.0]},
    }
    paces = {
        ranks: {way: [Pace(each / 32, None) for each in found] for way, found in ways.items()}
        for ranks, ways in rates.items()
    }
    (table,) = InputGap(example, paces).tables()
    assert table.header[1::3] == (REPLAYED, REAL, "kept", "in parallel")
    assert table.rows == (
        ("1", "100", "100%", "100%", "50", "100%", "50%", "100", "100%", "100%", "75", "100%", "75%"),
        ("4", "200", "50%", "100%", "60", "30%", "30%", "198", "50%", "99%", "", "", ""),
    )


def test_a_run_that_was_cut_off_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(input_gap, "ROOT", tmp_path)
    example = Example("digits", "digits.py", {"kept": Run()}, "kept")
    measured = {1: {"kept": [Pace(2.0, 0.01)], REPLAYED: [Pace(2.0, None)]}}
    InputGap(example, measured)._write_draft()
    again = InputGap(example)
    next(again.cases(Extent(1, True)))
    assert again.paces == measured
    assert again._reading("kept", 1) == (64, 0, 1)
