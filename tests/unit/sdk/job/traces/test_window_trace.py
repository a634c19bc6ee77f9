"""What ranks recorded, merged: by one clock, and so that nothing of one is taken for another's."""

import json

import pytest

from estimator_sdk.job.traces.window_trace import RankRecord, merge

BEGAN = 1_700_000_000.0


def record(folder, rank, host="algo-1", late=0.0, **files):
    """Of a rank whose steps end 1 s and 3 s after the begin, by a clock that is `late` seconds ahead."""
    paths = {}
    for kind, document in files.items():
        paths[kind] = folder / f"7-{rank}.{kind}.json"
        paths[kind].write_text(document if isinstance(document, str) else json.dumps(document))
    began = BEGAN + late
    return RankRecord(host, rank, began, began + 3, [(8, began + 1), (9, began + 3)], paths, [])


def slices(trace, category):
    return [
        (e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in trace["traceEvents"] if e.get("cat") == category
    ]


def names(trace, kind):
    found = [each for each in trace["traceEvents"] if each.get("name") == kind]
    return {(each["pid"], each["tid"]): each["args"]["name"] for each in found}


def test_the_steps_of_each_rank_are_by_the_clock_of_the_first_host(tmp_path):
    records = [record(tmp_path, 0), record(tmp_path, 1, "algo-2", late=5.0)]
    trace, failed = merge("a", records, {"algo-2": 5.0})
    of_each = [("step 8", 0.0, 1e6), ("step 9", 1e6, 2e6)]
    found = [(name, pid, tid, ts, dur) for name, pid, tid, ts, dur in slices(trace, "steps")]
    assert sorted((pid, tid, name, ts, dur) for name, pid, tid, ts, dur in found) == [
        (place, place, *each) for place in (1, 2) for each in of_each
    ]
    assert (trace["otherData"], failed) == ({"job": "a", "begins": BEGAN, "clock_offsets": {"algo-2": 5.0}}, [])


HOROVOD = [
    {"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1e6 * BEGAN - 5e6}},
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "gradient_0"}},
    {"name": "process_sort_index", "ph": "M", "pid": 1, "args": {"sort_index": 1}},
    {"ph": "E", "ts": 5_400_000, "pid": 1},
    {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 5_500_000, "pid": 1},
    {"ph": "E", "ts": 5_600_000, "pid": 1},
]


def test_horovods_tensors_are_threads_of_one_process_and_its_times_those_of_the_calendar(tmp_path):
    trace, _ = merge("a", [record(tmp_path, 0, horovod=HOROVOD)], {})
    (process,) = [pid for (pid, _), name in names(trace, "process_name").items() if name == "Horovod, by tensor"]
    assert names(trace, "thread_name")[process, 1] == "gradient_0"
    found = [(e["ph"], e["tid"], e["ts"]) for e in trace["traceEvents"] if e.get("cat") == "horovod"]
    assert found == [("B", 1, 500_000.0), ("E", 1, 600_000.0)]


@pytest.mark.parametrize(
    ("base", "first"), [(1e9 * BEGAN, 0.0), (None, 1e6 * BEGAN), (None, 123.0)], ids=["base", "calendar", "its own"]
)
def test_profiles_of_pytorch_are_kept_apart_by_rank_whatever_their_clock(tmp_path, base, first):
    profile = {
        "traceEvents": [
            {"name": "process_name", "ph": "M", "pid": 77, "args": {"name": "python"}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 77, "ts": first, "dur": 10},
            {"ph": "s", "cat": "flow", "name": "ac2g", "id": 4, "pid": 77, "tid": 77, "ts": first + 1},
        ]
    }
    if base is not None:
        profile["baseTimeNanoseconds"] = base
    trace, failed = merge("a", [record(tmp_path, rank, torch=profile) for rank in (0, 1)], {})
    assert failed == []
    assert [(ts, dur) for _, _, _, ts, dur in slices(trace, "cpu_op")] == [(0.0, 10), (0.0, 10)]
    processes = [pid for _, pid, _, _, _ in slices(trace, "cpu_op")]
    assert [names(trace, "process_name")[pid, 0] for pid in processes] == ["rank 0: python", "rank 1: python"]
    assert len({each["id"] for each in trace["traceEvents"] if each["ph"] == "s"}) == 2


@pytest.mark.parametrize("text", ["", "[", "3", '{"traceEvents": 3}', '[{"ph": "B"}]', '[{"ph": "B", "ts": "x"}]'])
@pytest.mark.parametrize("kind", ["horovod", "torch"])
def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_there(tmp_path, kind, text):
    trace, failed = merge("a", [record(tmp_path, 0, **{kind: text})], {})
    assert len(slices(trace, "steps")) == 2
    if failed:
        assert failed[0].startswith(f"rank 0: its file 7-0.{kind}.json cannot be read: ")
    else:
        assert (kind, text) == ("torch", '[{"ph": "B"}]')


def test_what_a_rank_writes_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "7-3.json"
    document = {"rank": 3, "began": 1.0, "ended": 3, "steps": [[8, 2.0]], "files": {"torch": "../../x"}, "said": ["no"]}
    path.write_text(json.dumps(document))
    found = RankRecord.read("algo-1", path)
    assert (found.rank, found.steps, found.said) == (3, [(8, 2.0)], ["no"])
    assert found.files == {"torch": tmp_path / "x"}
