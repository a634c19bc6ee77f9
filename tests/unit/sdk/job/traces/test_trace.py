"""A job as a trace: every slice is what the logs of its hosts say."""

from types import SimpleNamespace

import pytest
from estimator_container.contract import agent_events, events
from estimator_container.logs import frames
from estimator_container.logs.frames import EVENT, NO_RANK, FrameWriter

from estimator_sdk.job.traces import trace

BEGIN = 1_700_000_000.0


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Writes what a host tells at a time, in seconds after the begin."""
    clock = SimpleNamespace(time_ns=lambda: 0)
    monkeypatch.setattr(frames, "time", clock)
    logs = {}

    def tell(host, time, event):
        path = tmp_path / host / "output" / "logs" / "frames"
        if host not in logs:
            path.parent.mkdir(parents=True)
            logs[host] = FrameWriter(str(path))
        clock.time_ns = lambda: round((BEGIN + time) * 1e9)
        logs[host].write(NO_RANK, EVENT, event.to_json().encode())

    tell.job = SimpleNamespace(
        name="a", log_files=lambda: [tmp_path / host / "output" / "logs" / "frames" for host in ("algo-1", "algo-2")]
    )
    return tell


def slices(job):
    """Name, process, thread, start and length in seconds, of all slices."""
    found = [each for each in trace.make(job)["traceEvents"] if each["ph"] == "X"]
    return [(each["name"], each["pid"], each["tid"], each["ts"] / 1e6, each["dur"] / 1e6) for each in found]


def test_phases_ranks_and_checkpoints_are_slices_of_their_hosts(told):
    told("algo-1", 0.0, events.PhaseStarted("world"))
    told("algo-2", 0.5, events.PhaseStarted("world"))
    told("algo-1", 1.0, events.RankStarted(0))
    told("algo-1", 2.0, events.PhaseEnded("world", 2.0))
    told("algo-1", 5.0, agent_events.CheckpointPublished("0001", 1, 10, 10, 1.5))
    told("algo-1", 9.0, events.RankEnded(0, 7))
    told("algo-2", 3.0, events.RankStarted(None))
    told("algo-2", 4.0, events.Stopping())
    assert slices(told.job) == [
        ("world", 1, 0, 0.0, 2.0),
        ("world", 2, 0, 0.5, 3.5),
        ("rank", 1, 1, 1.0, 8.0),
        ("rank", 2, frames.SPAWNED, 3.0, 1.0),
        ("checkpoint 0001", 1, 0, 3.5, 1.5),
    ]
    made = trace.make(told.job)
    assert made["otherData"] == {"job": "a", "begins": BEGIN}
    (stopping,) = [each for each in made["traceEvents"] if each["name"] == "stopping"]
    assert (stopping["ph"], stopping["pid"], stopping["ts"]) == ("i", 2, 4e6)
    names = {(each["pid"], each.get("tid")): each["args"]["name"] for each in made["traceEvents"] if each["ph"] == "M"}
    assert names == {
        (1, None): "algo-1",
        (1, 0): "phases",
        (1, 1): "rank 0",
        (2, None): "algo-2",
        (2, 0): "phases",
        (2, frames.SPAWNED): "script",
    }


def test_the_steps_between_two_tellings_are_a_slice_with_the_mean_time_of_one(told):
    first = BEGIN + 1.0
    for steps, last in ((1, 1.0), (11, 3.0), (12, 4.0)):
        told("algo-1", last, events.TrainingSteps([3], [steps], [100 + steps], [first], [BEGIN + last]))
    told(
        "algo-1", 9.0, events.TrainingSteps([3], [5], [120], [BEGIN + 7.0], [BEGIN + 9.0])
    )  # a process that began anew
    found = [each for each in trace.make(told.job)["traceEvents"] if each["ph"] == "X"]
    assert [(each["name"], each["dur"] / 1e6, each["args"]) for each in found] == [
        ("steps 102 to 111", 2.0, {"steps": 10, "mean seconds": 0.2}),
        ("step 112", 1.0, {"steps": 1, "mean seconds": 1.0}),
        ("steps 117 to 120", 2.0, {"steps": 4, "mean seconds": 0.5}),
    ]
    assert {each["tid"] for each in found} == {4}


def test_a_job_that_has_told_nothing_is_an_empty_trace(told):
    assert slices(told.job) == []


def test_a_host_whose_clock_is_ahead_is_put_where_it_was(told, tmp_path):
    told("algo-1", 0.0, events.PhaseStarted("world"))
    told("algo-1", 2.0, events.PhaseEnded("world", 2.0))
    told("algo-2", 5.5, events.PhaseStarted("world"))
    told("algo-2", 7.0, events.PhaseEnded("world", 1.5))
    clocks = tmp_path / "algo-1" / "output" / "logs" / "timelines" / "clocks.json"
    clocks.parent.mkdir()
    clocks.write_text('{"algo-2": {"offset": 5.0, "within": 0.001}}')
    assert slices(told.job) == [("world", 1, 0, 0.0, 2.0), ("world", 2, 0, 0.5, 1.5)]
    clocks.write_text("[]")
    assert slices(told.job)[1] == ("world", 2, 0, 5.5, 1.5)
