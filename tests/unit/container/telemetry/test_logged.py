"""The values that a script logs: what it says is what is read, and outside of a job nothing happens."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest
from estimator_container.telemetry.logged import NAME, VALUE, LoggedValues, ValueLog, rank_of_file


def run(script, tmp_path, **variables):
    """Run a script as a rank's, and return what each file of logged values holds."""
    env = {**os.environ, "PYTHONPATH": str(Path(estimator_container.__file__).parents[1]), **variables}
    subprocess.run([sys.executable, "-c", script], check=True, env=env, cwd=tmp_path, timeout=120)
    files = sorted(tmp_path.glob("output/logs/metrics/*"), key=lambda path: path.stat().st_mtime_ns)
    return [(rank_of_file(path.name), list(LoggedValues().feed(path.read_bytes()))) for path in files]


@pytest.fixture
def job(tmp_path):
    """The variables of a rank of a job whose host reads what is logged."""
    (tmp_path / "output" / "logs").mkdir(parents=True)
    (tmp_path / "output" / "training-steps").write_text(str(tmp_path))
    return {"SM_OUTPUT_DIR": str(tmp_path / "output"), "RANK": "3"}


def test_what_a_script_logs_is_read_with_its_rank_step_and_time(tmp_path, job):
    script = """
import json, time
from estimator_container import metrics
began = time.time()
metrics.log(loss=0.5, accuracy=1, step=7)
metrics.log({"train/loss": float("inf")}, step=-8)
metrics.log(loss=0.25)
json.dump([began, time.time()], open("truth", "w"))
"""
    ((rank, values),) = run(script, tmp_path, **job)
    assert rank == 3
    assert {(each.name, each.step, each.value) for each in values} == {
        ("loss", 7, 0.5),
        ("accuracy", 7, 1.0),
        ("train/loss", -8, float("inf")),
        ("loss", None, 0.25),
    }
    began, ended = json.loads((tmp_path / "truth").read_text())
    assert all(began <= each.time <= ended for each in values)


def test_both_ways_to_import_it_are_one_module_and_a_fork_has_a_file_of_its_own(tmp_path, job):
    script = """
import os
import estimator_container.metrics
from estimator_container import metrics
assert estimator_container.metrics is metrics
metrics.log(loss=1.0)
if os.fork() == 0:
    metrics.log(loss=2.0)
    os._exit(0)
os.wait()
metrics.log(loss=3.0)
"""
    found = run(script, tmp_path, **job)
    assert sorted([value.value for value in values] for _, values in found) == [[1.0, 3.0], [2.0]]


def test_outside_of_a_job_nothing_is_written(tmp_path):
    script = "from estimator_container import metrics; metrics.log(loss=1.0, step=1)"
    (tmp_path / "output").mkdir()
    assert run(script, tmp_path) == []
    assert run(script, tmp_path, SM_OUTPUT_DIR=str(tmp_path / "output")) == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "output"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('metrics.log(loss="low")', "loss must be one number, not 'low' (str)"),
        ("metrics.log(0.3)", "0.3 has no name: write metrics.log(loss=…), or give a dict"),
        ("metrics.log(loss=[1, 2])", "loss must be one number, not [1, 2] (list)"),
        ("metrics.log(loss=10**400)", "loss must be one number"),
        ("metrics.log(loss=1.0, step=1.5)", "step must be a whole number below 2**53, not 1.5"),
        ("metrics.log(loss=1.0, step=2**60)", "step must be a whole number below 2**53"),
        ('metrics.log(loss=1.0, step=float("nan"))', "step must be a whole number below 2**53, not nan"),
        ('metrics.log({"": 1.0})', "'' is not a name"),
    ],
)
def test_what_is_no_number_is_refused_in_a_sentence(call, words):
    from estimator_container import metrics

    with pytest.raises((TypeError, ValueError)) as raised:
        eval(call, {"metrics": metrics})
    assert words in str(raised.value)


def test_values_are_read_in_pieces_of_any_size_and_a_torn_end_waits(tmp_path):
    log = ValueLog(str(tmp_path), "0")
    for step in range(20):
        log.add(step, {"loss": float(step), "a" * 40: 1.0})
    data = next(tmp_path.iterdir()).read_bytes()
    for size in (1, 7, 33, 1000):
        parser = LoggedValues()
        found = [
            value
            for at in range(0, len(data) - 5, size)
            for value in parser.feed(data[at : at + size][: len(data) - 5 - at])
        ]
        assert [value.step for value in found if value.name == "loss"] == list(range(20))[
            : len(found) // 2 + len(found) % 2
        ]
        assert len(found) == 39
        assert len(list(parser.feed(data[-5:]))) == 1


def test_a_process_goes_on_behind_the_torn_cell_of_an_earlier_one(tmp_path):
    path = tmp_path / f"script-{os.getpid()}"
    path.write_bytes(b"half a cell")
    ValueLog(str(tmp_path), None).add(1, {"loss": 2.0})
    (found,) = LoggedValues().feed(path.read_bytes())
    assert (found.name, found.step, found.value) == ("loss", 1, 2.0)
    assert rank_of_file(path.name) is None


CELL = struct.Struct("<dqdII")
KEPT = CELL.pack(1.0, 4, 0.0, 0, NAME) + b"loss".ljust(CELL.size, b"\0")


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        (CELL.pack(1.0, -32, 0.0, 1, NAME), []),
        (CELL.pack(1.0, -1 << 63, 0.0, 1, NAME), []),
        (CELL.pack(1.0, 1 << 40, 0.0, 1, NAME), []),
        (CELL.pack(math.nan, 1, 2.0, 0, VALUE), []),
        (CELL.pack(1e300, 1, 2.0, 0, VALUE), []),
        (CELL.pack(1.0, 1 << 60, 2.0, 0, VALUE), [(None, 2.0)]),
        (CELL.pack(1.0, 1, 2.0, 7, VALUE), []),
        (CELL.pack(1.0, 1, 2.0, 0, 99), []),
    ],
)
def test_a_cell_that_no_log_of_ours_has_hides_none_behind_it(cell, found):
    values = LoggedValues().feed(KEPT + cell + CELL.pack(1.0, 9, 0.5, 0, VALUE))
    assert [(value.step, value.value) for value in values] == [*found, (9, 0.5)]
