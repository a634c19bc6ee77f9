"""What the logs of a job tell of where the time of its steps goes."""

from types import SimpleNamespace

import pytest
from estimator_container.contract.events import RankSlow, StepTimes
from estimator_container.logs.frames import EVENT, NO_RANK, FrameWriter

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.job.diagnosis import diagnosis, step_records
from estimator_sdk.job.diagnosis.step_records import MOST_SAMPLES, StepSample


class Written:
    """A job of two hosts in two attempts, whose logs are written here."""

    name = "train-1"

    def __init__(self, path):
        self.path = path

    def log_files(self):
        folders = [f"{place}/algo-{host}" for place in ("attempts/1/hosts", "hosts") for host in (1, 2)]
        return [self.path / folder / "output" / "logs" / "frames" for folder in folders]

    def record(self):
        attempts = (AttemptRecord(1, 0.0, 50.0), AttemptRecord(2, 51.0, 90.0))
        hosts = ("algo-1", "algo-2")
        return SimpleNamespace(status="Completed", backend="process", hosts=hosts, attempts=attempts)

    def write(self, attempt, host, *events):
        place = self.log_files()[2 * attempt - 2 + host - 1]
        place.parent.mkdir(parents=True, exist_ok=True)
        frames = FrameWriter(str(place))
        for event in events:
            frames.write(NO_RANK, EVENT, event.to_json().encode())
        frames.close()


@pytest.fixture
def job(tmp_path):
    return Written(tmp_path)


def times(rank, steps, seconds, input, pid=7):
    return StepTimes((rank,), (pid,), (steps,), (seconds,), (input,), (None,), (0.5,), (0.0,))


def test_each_rank_has_what_it_told_in_the_newest_attempt(job):
    job.write(1, 1, times(0, 900, 90.0, 80.0))
    job.write(2, 1, times(0, 10, 1.0, 0.5), times(0, 20, 2.0, 0.75), RankSlow("algo-1", 0, 1.5, 0.3, 0.2))
    job.write(2, 2, times(1, 20, 2.0, None))
    found = step_records.read(job)
    assert found.of_ranks() == {
        ("algo-1", 0): [StepSample(10, 1.0, 0.5, None, 0.5, 0.0), StepSample(20, 2.0, 0.75, None, 0.5, 0.0)],
        ("algo-2", 1): [StepSample(20, 2.0, None, None, 0.5, 0.0)],
    }
    assert [event.rank for event in found.slow] == [0]


def test_of_an_attempt_that_has_not_told_anything_yet_the_one_before_counts(job):
    job.write(1, 1, times(0, 900, 90.0, 80.0))
    assert step_records.read(job).of_ranks()["algo-1", 0][-1].steps == 900


def test_of_several_processes_of_a_rank_the_one_with_most_steps_counts(job):
    job.write(2, 1, times(0, 300, 30.0, 1.0, pid=7), times(0, 5, 3.0, 2.0, pid=8))
    assert step_records.read(job).of_ranks()["algo-1", 0] == [StepSample(300, 30.0, 1.0, None, 0.5, 0.0)]


def test_a_long_job_takes_no_more_memory(job):
    job.write(2, 1, *(times(0, count, count / 10, 0.0) for count in range(1, 5 * MOST_SAMPLES)))
    samples = step_records.read(job).of_ranks()["algo-1", 0]
    assert len(samples) <= MOST_SAMPLES
    assert samples[-1].steps == 5 * MOST_SAMPLES - 1
    assert sorted(samples, key=lambda sample: sample.steps) == samples


def test_the_diagnosis_of_a_job_is_made_of_them(job):
    job.write(2, 2, *(times(1, count, count / 10, count / 40) for count in range(1, 101)))
    job.write(2, 1, *(times(0, count, count / 10, count / 40) for count in range(1, 101)))
    found = diagnosis.make(job)
    assert [(rank.host, rank.rank, rank.input) for rank in found.ranks] == [("algo-1", 0, 0.25), ("algo-2", 1, 0.25)]
    assert (found.input_class, [cause.kind for cause in found.causes]) == (
        "highly input bound",
        ["input", "checkpoint"],
    )


def test_a_job_without_steps_is_not_blamed_for_anything(job):
    found = diagnosis.make(job)
    assert (found.causes, found.input_class) == ((), None)
    assert "mark_step" in found.thin
