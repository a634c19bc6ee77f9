"""Curves: all values count, few points are kept, and a reader gets what is new."""

import math
import os
import random
from types import SimpleNamespace

import pytest
from estimator_container.logs.frames import STDOUT, FrameWriter
from estimator_container.telemetry.logged import ValueLog

from estimator_sdk.telemetry.curve import Curve
from estimator_sdk.telemetry.curves import Curves


class Log:
    """The folder of a job with one host."""

    def __init__(self, folder):
        self.folder = folder
        self.frames = folder / "hosts" / "algo-1" / "output" / "logs" / "frames"
        self.begin_attempt()
        self.files = [self.frames]

    def begin_attempt(self):
        self.frames.parent.mkdir(parents=True)
        self.writer = FrameWriter(str(self.frames))

    def set_aside(self):
        target = self.folder / "attempts" / "1"
        target.mkdir(parents=True)
        (self.folder / "hosts").rename(target / "hosts")
        self.begin_attempt()
        self.files = [target / self.frames.relative_to(self.folder), self.frames]

    def write(self, rank, text):
        self.writer.write(rank, STDOUT, text.encode())

    def logs_as(self, rank):
        return ValueLog(str(self.frames.parent / "metrics"), rank)

    def curves(self, points=512, definitions=()):
        described = {"AlgorithmSpecification": {"MetricDefinitions": definitions}}
        job = SimpleNamespace(name="a", log_files=lambda: self.files, request=lambda: described)
        return Curves(job, points)


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


def points_of(curves, name, rank=0):
    (part,) = curves.parts(names=[name], ranks=[rank])
    return list(zip(part.steps, part.mean, strict=True))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17, 1000, 4321])
def test_a_curve_has_few_points_and_in_them_every_value(count):
    draw = random.Random(count)
    values = [draw.gauss(0, 1) for _ in range(count)]
    curve = Curve("loss", "algo-1", 0, most_points=8)
    for number, value in enumerate(values, 1):
        curve.add(10 * number, number / 2, value, number)
    part = curve.part()
    assert len(part.counts) <= 8 and sum(part.counts) == count
    at = 0
    for place, size in enumerate(part.counts):
        there = values[at : at + size]
        assert (part.steps[place], part.times[place]) == (10 * (at + 1), (at + 1) / 2)
        assert (part.low[place], part.high[place]) == (min(there), max(there))
        assert part.mean[place] == pytest.approx(sum(there) / size)
        at += size
    assert len(set(part.counts[:-1])) <= 1
    assert (part.newest, part.newest_step) == (values[-1], 10 * count)


def test_what_is_not_finite_is_counted_and_spoils_nothing():
    curve = Curve("loss", "algo-1", 0, most_points=2)
    for number, value in enumerate([1.0, math.nan, math.inf, 3.0, math.nan], 1):
        curve.add(None, 0.0, value, number)
    part = curve.part()
    assert (part.counts, part.not_finite, part.mean[0]) == ([4, 1], [2, 1], 2.0)
    assert math.isnan(part.mean[1]) and math.isnan(part.newest)


def test_who_follows_gets_what_is_new_and_puts_the_whole_curve_together(log):
    logged = log.logs_as("0")
    curves, seen, cursor, sent = log.curves(points=16), [], 0, 0
    for step in range(1, 301):
        logged.add(step, {"loss": 1 / step, "other": 0.0})
        if step % 7:
            continue
        assert curves.refresh() == 14
        for part in curves.parts(since=cursor, names=["loss"]):
            seen[part.begins :] = zip(part.steps, part.mean, part.counts, strict=True)
            sent += len(part.steps)
        cursor = curves.cursor
        assert curves.parts(since=cursor) == []
    (whole,) = curves.parts(names=["loss"])
    assert seen == list(zip(whole.steps, whole.mean, whole.counts, strict=True))
    assert sum(whole.counts) == 294 and curves.refresh() == 2 * 6
    assert sent < 42 * 16 / 2


def test_values_have_the_rank_the_step_and_the_time_of_their_line(log):
    log.write(1, "step: 5, loss: 0.5\nstep: 6, lo")
    curves = log.curves()
    assert curves.refresh() == 1
    log.write(1, "ss: 0.25\n")
    log.write(0, "loss: 9\nloss: 8\n")
    assert curves.refresh() == 3
    assert points_of(curves, "loss", 1) == [(5.0, 0.5), (6.0, 0.25)]
    assert points_of(curves, "loss", 0) == [(1.0, 9.0), (2.0, 8.0)]
    (part,) = curves.parts(ranks=[1])
    assert part.times == sorted(part.times) and part.times[0] == pytest.approx(log.frames.stat().st_mtime, abs=60)


def test_of_a_name_that_comes_from_several_places_the_script_s_call_counts_most(log):
    log.write(0, "loss: 1\nis 5 now, accuracy: 0.5\naccuracy: 0.75\n")
    definitions = [{"Name": "accuracy", "Regex": "accuracy: ([0-9.]+)"}, {"Name": "now", "Regex": "is ([0-9]+) now"}]
    curves = log.curves(definitions=definitions)
    curves.refresh()
    assert points_of(curves, "loss") == [(1.0, 1.0)]
    log.logs_as("0").add(4, {"loss": 2.0})
    curves.refresh()
    assert points_of(curves, "loss") == [(4.0, 2.0)]
    assert points_of(curves, "accuracy") == [(1.0, 0.5), (2.0, 0.75)]
    assert points_of(curves, "now") == [(1.0, 5.0)]


def test_a_log_that_is_set_aside_is_not_read_again(log):
    log.write(0, "loss: 1\n")
    log.logs_as("0").add(1, {"called": 1.0})
    curves = log.curves()
    assert curves.refresh() == 2
    log.write(0, "loss: 2\n")
    log.set_aside()
    log.write(0, "loss: 3\n")
    assert curves.refresh() == 2
    assert points_of(curves, "loss") == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert curves.refresh() == 0


def test_a_file_of_somebody_else_and_a_missing_log_do_no_harm(log, tmp_path):
    log.logs_as("0").add(1, {"loss": 1.0})
    (log.frames.parent / "metrics" / "notes.txt").write_text("mine")
    log.files = [*log.files, tmp_path / "hosts" / "algo-2" / "output" / "logs" / "frames"]
    assert log.curves().refresh() == 1


def test_many_values_become_few_points(log):
    path = log.frames.parent / "metrics" / f"0-{os.getpid()}"
    log.logs_as("0").add(0, {"loss": 0.0})
    data = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(100):
            file.write(data[-32:] * 2_000)
    curves = log.curves()
    assert curves.refresh() == 200_001
    (part,) = curves.parts()
    assert sum(part.counts) == 200_001 and len(part.counts) <= 512
