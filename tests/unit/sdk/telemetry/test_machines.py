"""What is asked of the measurements of a job: the times, the points, the series, and what is new."""

from types import SimpleNamespace

import pytest
from estimator_container.telemetry.metric_table import SeriesKey
from estimator_container.telemetry.recording import History

from estimator_sdk import EstimatorError
from estimator_sdk.telemetry import machines
from estimator_sdk.telemetry.machines import Question

START = 1_700_000_100_000 // 900_000 * 900_000
CPU, READ = SeriesKey("system.cpu.utilization"), SeriesKey("process.disk.io", 1, "read")
ROWS = 4000


class MeasuredJob:
    """A job of two hosts, of which the second one was measured half as long."""

    name = "a"

    def __init__(self, folder):
        self._folder = folder
        logs = {host: folder / host / "output" / "logs" for host in ("algo-1", "algo-2")}
        for each in logs.values():
            each.mkdir(parents=True)
        self.kept = {host: History(str(each / "telemetry")) for host, each in logs.items()}

    def measure(self, host, first, last):
        for number in range(first, last):
            values = {CPU: (number % 100) / 100, READ: 1024.0 * (number % 8)}
            self.kept[host].add(START + 2000 * number, values if host == "algo-1" else {CPU: 0.5})

    def log_files(self):
        return [self._folder / host / "output" / "logs" / "frames" for host in ("algo-1", "algo-2")]

    def record(self):
        return SimpleNamespace(hosts=("algo-1", "algo-2"))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    made = MeasuredJob(tmp_path_factory.mktemp("job"))
    made.measure("algo-1", 0, ROWS)
    made.measure("algo-2", 0, ROWS // 2)
    return made


def test_all_of_it_is_in_as_few_points_as_are_asked_for(job):
    found = machines.read(job, Question(points=50))
    assert [(one.metric, one.host, one.rank, one.part) for one in found.series] == [
        ("system.cpu.utilization", "algo-1", None, ""),
        ("system.cpu.utilization", "algo-2", None, ""),
        ("process.disk.io", "algo-1", 1, "read"),
    ]
    cpu, other, read = found.series
    assert 40 <= len(cpu.times) <= 52 and len(other.times) == pytest.approx(len(cpu.times) / 2, abs=1)
    assert found.resolution == 180 and all(time % 180 == 0 for time in cpu.times)
    assert (min(cpu.low), max(cpu.high)) == pytest.approx((0, 0.99))
    assert sum(cpu.mean) / len(cpu.mean) == pytest.approx(0.495, abs=0.02)
    assert (min(read.low), max(read.high)) == (0, 7 * 1024) and read.unit == "By/s" and read.is_of_rank
    assert found.cursor == cpu.times[-1]


@pytest.mark.parametrize("resolution", [2, 4, 60, 64, 120, 900, 1000])
def test_at_any_resolution_each_point_has_the_extremes_of_its_time(job, resolution):
    (cpu,) = machines.read(job, Question(["system.cpu.utilization"], ["algo-1"], resolution=resolution)).series
    values = {START // 1000 + 2 * number: (number % 100) / 100 for number in range(ROWS)}
    times = sorted({time // resolution * resolution for time in values})
    assert cpu.times == times
    for place in (0, 1, len(times) // 2, -1):
        there = [value for time, value in values.items() if 0 <= time - cpu.times[place] < resolution]
        assert (cpu.low[place], cpu.high[place]) == pytest.approx((min(there), max(there)))
        assert cpu.mean[place] == pytest.approx(sum(there) / len(there), abs=1e-4)


@pytest.mark.parametrize("start", [None, 0.0])
@pytest.mark.parametrize("rows", [20, 500])
def test_nothing_is_told_of_the_time_before_the_first_row(tmp_path, start, rows):
    """Though the minute, and the quarter of an hour, in which a job begins are rows of their own once they are over."""
    job, first = MeasuredJob(tmp_path), 443
    job.measure("algo-1", first, first + rows)
    (cpu,) = machines.read(job, Question(["system.cpu.utilization"], start=start, resolution=2)).series
    assert cpu.times == [START // 1000 + 2 * number for number in range(first, first + rows)]


def test_a_part_of_the_time_the_hosts_and_the_ranks_can_be_chosen(job):
    start = START / 1000 + 600
    found = machines.read(job, Question(hosts=["algo-1"], ranks=[0], start=start, end=start + 99, resolution=2))
    (cpu,) = found.series  # of a rank that is not asked for there is nothing
    assert (cpu.host, cpu.times[0], cpu.times[-1], len(cpu.times)) == ("algo-1", start, start + 98, 50)
    assert machines.read(job, Question(start=start + 1e6)).series == []


def test_who_goes_on_from_the_cursor_sees_the_rows_of_a_host_that_is_behind(tmp_path):
    job, seen, cursor = MeasuredJob(tmp_path), set(), None
    for number in range(100):
        job.measure("algo-1", number, number + 1)
        if number >= 10:  # by its clock, or because its rows take so long to come
            job.measure("algo-2", number - 10, number - 9)
        found = machines.read(job, Question(["system.cpu.utilization"], start=cursor, resolution=2))
        assert all(len(one.times) <= 12 for one in found.series)
        seen |= {(one.host, time) for one in found.series for time in one.times}
        cursor = found.cursor
    rows = {"algo-1": 100, "algo-2": 90}
    assert seen == {(host, START // 1000 + 2 * row) for host, count in rows.items() for row in range(count)}


def test_who_goes_on_from_the_cursor_sees_every_row(tmp_path):
    job, seen, cursor = MeasuredJob(tmp_path), {}, None
    for rows in range(0, 200, 7):
        job.measure("algo-1", rows, rows + 7)
        found = machines.read(job, Question(["system.cpu.utilization"], start=cursor, resolution=10))
        for one in found.series:
            seen.update(zip(one.times, one.mean, strict=True))
        cursor = found.cursor
    (whole,) = machines.read(job, Question(["system.cpu.utilization"], resolution=10)).series
    assert seen == dict(zip(whole.times, whole.mean, strict=True))


def test_a_job_without_measurements_has_no_series(tmp_path):
    job = SimpleNamespace(log_files=lambda: [tmp_path / "algo-1" / "output" / "logs" / "frames"], record=lambda: None)
    assert machines.read(job, Question()) == machines.Measurements([], 2, None)


def test_a_job_that_runs_elsewhere_says_who_has_its_measurements():
    state = SimpleNamespace(attempts=(1,), backend="sagemaker")
    job = SimpleNamespace(name="far", log_files=list, record=lambda: state)
    with pytest.raises(EstimatorError, match="far runs on sagemaker.*CloudWatch"):
        machines.read(job, Question())
