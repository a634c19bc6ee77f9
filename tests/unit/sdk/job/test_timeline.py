"""What a job's logs tell of when what happened."""

from types import SimpleNamespace

import pytest
from estimator_container.contract import agent_events, events
from estimator_container.logs.frames import EVENT, NO_RANK, SPAWNED, STDOUT, TOOLKIT, FrameWriter
from estimator_container.logs.lines import Block

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.job import timeline
from estimator_sdk.job.timeline import SnapshotTime, Span


class Written:
    """A job of one host in two attempts, whose frames are written with a clock that is set by hand."""

    def __init__(self, path, monkeypatch):
        self.path = path
        self.now = 0
        self.definitions = []
        self.blocks_there = []
        monkeypatch.setattr("estimator_container.logs.frames.time.time_ns", lambda: self.now * 10**9)

    def log_files(self):
        return [self.path / place / "algo-1" / "frames" for place in ("attempts/1/hosts", "hosts")]

    def write(self, attempt, at, said, rank=NO_RANK, stream=STDOUT):
        self.now = at
        place = self.log_files()[attempt - 1]
        place.parent.mkdir(parents=True, exist_ok=True)
        frames = FrameWriter(str(place))
        data, stream = (said, stream) if isinstance(said, bytes) else (said.to_json().encode(), EVENT)
        frames.write(rank, stream, data)
        frames.close()

    def record(self):
        attempts = (AttemptRecord(1, 0.0, 50.0), AttemptRecord(2, 51.0, 90.0))
        return SimpleNamespace(created=0.0, ended=100.0, is_final=True, hosts=("algo-1",), attempts=attempts)

    def request(self):
        return {"AlgorithmSpecification": {"MetricDefinitions": self.definitions}}

    def blocks(self, follow):
        return iter(self.blocks_there)

    def read(self):
        return timeline.read(self, 1000.0)


@pytest.fixture
def job(tmp_path, monkeypatch):
    return Written(tmp_path, monkeypatch)


def test_each_attempt_has_what_its_own_logs_say(job):
    job.write(1, 3, agent_events.CheckpointRestored(7, (), "nothing", 0, 0))
    job.write(1, 4, agent_events.ChannelFetched("train", 1, 1, 0.5))
    job.write(1, 10, events.RankStarted(0))
    job.write(1, 30, agent_events.CheckpointPublished("000007-00000001", 1, 1, 1, 2.5))
    job.write(1, 40, events.RankEnded(0, -9))
    job.write(1, 41, events.FailureFound("killed"))
    job.write(1, 42, events.Ended("failed", "killed"))
    job.write(2, 60, events.RankStarted(0))
    first, second = job.read().attempts
    assert (first.restored, first.base, first.channels, first.failure_found) == (3, "nothing", 4, 41)
    assert first.snapshots == [SnapshotTime("000007-00000001", 27.5, 30)]
    rank = first.ranks["algo-1", 0]
    assert (rank.started, rank.ended, rank.code, first.hosts["algo-1"].ended) == (10, 40, -9, 42)
    assert second.ranks["algo-1", 0].started == 60


def test_of_the_steps_of_a_process_the_last_word_counts(job):
    job.write(1, 20, events.TrainingSteps((0,), (1,), (1,), (12.0,), (12.0,)))
    job.write(1, 30, events.TrainingSteps((0,), (9,), (9,), (12.0,), (28.0,)))
    job.write(1, 40, events.TrainingSteps((0,), (3,), (3,), (33.0,), (38.0,)))
    rank = job.read().attempts[0].ranks["algo-1", 0]
    assert list(rank.steps.values()) == [Span(12, 28), Span(33, 38)]


def test_the_output_is_that_of_the_ranks_and_not_the_toolkit_s_nor_that_of_spawned_ones(job):
    for at in (10, 15, 20):
        job.write(1, at, b"line\n", rank=1)
    job.write(1, 5, b"words\n", stream=TOOLKIT)
    job.write(1, 30, b"line\n", rank=SPAWNED + 1)
    job.write(1, 31, events.RankStarted(SPAWNED + 1))
    read = job.read()
    assert read.ranks == (("algo-1", 1),)
    assert read.attempts[0].ranks["algo-1", 1].output == Span(10, 20)


def test_lines_with_metrics_are_looked_for_where_no_steps_are_counted(job):
    job.definitions = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    at = [(12, b"loss=0.5\n"), (13, b"other\n"), (20, b"loss=0.4\n"), (70, b"loss=0.3\n")]
    job.blocks_there = [Block(time * 10**9, "algo-1", 0, "stdout", data) for time, data in at]
    job.write(1, 10, events.RankStarted(0))
    assert [attempt.ranks["algo-1", 0].metrics for attempt in job.read().attempts] == [Span(12, 20), Span(70, 70)]
    job.write(1, 20, events.TrainingSteps((0,), (1,), (1,), (12.0,), (12.0,)))
    assert job.read().attempts[0].ranks["algo-1", 0].metrics is None


def test_a_job_without_logs_has_its_hosts(job):
    read = job.read()
    assert (read.created, read.ended, read.ranks) == (0, 100, (("algo-1", None),))


def test_an_attempt_that_has_begun_since_the_job_was_looked_at_has_its_turn_at_the_next_look(job, monkeypatch):
    job.write(1, 5, events.RankStarted(0))
    before = SimpleNamespace(created=0.0, ended=None, is_final=False, hosts=("algo-1",), attempts=())
    monkeypatch.setattr(job, "record", lambda: before)
    assert job.read().attempts == ()
