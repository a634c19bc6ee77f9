"""T1 and T2: what a job measures, while it runs and after its end."""

from __future__ import annotations

import pytest

from estimator_sdk import Job
from estimator_sdk.job.traces import trace, window
from tests.conformance.jobs import ranks_with_steps
from tests.waiting import SECONDS, wait_for

MEGABYTE = 1 << 20
HOLDS = """
import os, signal
from estimator_container import metrics
rank = int(os.environ["RANK"])
kept = bytearray(os.urandom(1)) * ((rank + 1) * 64 << 20)
for step in range(1, 6):
    metrics.log(loss=rank + 1 / step, step=10 * step)
    print(f"step: {10 * step}, printed: {rank + step}")
    print(f"value <{rank * step}>")
status = dict(line.split(":") for line in open("/proc/self/status").read().splitlines())
print("resident", 1024 * int(status["VmRSS"].split()[0]), flush=True)
signal.pause()
"""
TRAINS = """
import time
from estimator_container.training import mark_step
while True:
    time.sleep(0.02)
    mark_step()
"""
DEFINED = [{"Name": "defined", "Regex": "value <([0-9]+)>"}]
RANKS, STEPS = range(4), range(1, 6)


@pytest.fixture
def running(script):
    """A job whose ranks have told all, and hold what they have."""
    estimator = script.estimator(HOLDS, hosts=2, processes=2, metric_definitions=DEFINED)
    job = estimator.fit(wait=False)
    yield job
    job.stop()
    job.wait()


def memory_of_ranks(job: Job) -> dict[int, tuple[str, float]]:
    """The host and the memory of each rank that was measured."""
    series = job.machines(["process.memory.usage"]).series
    return {one.rank: (one.host, one.mean[-1]) for one in series if one.rank is not None}


def curves_of(job: Job) -> dict[tuple[str, int | None], list[tuple[float, float]]]:
    return {(part.name, part.rank): list(zip(part.steps, part.mean, strict=True)) for part in job.curves().parts()}


def are_measured(job: Job) -> bool:
    """Whether each rank holds what it is to hold, has said so, and has been measured since."""
    memory, resident = memory_of_ranks(job), resident_of_ranks(job)
    rates = job.machines(["process.cpu.utilization"]).series
    has_all = len(resident) == len(RANKS) and all(
        rank in memory and memory[rank][1] > said - 16 * MEGABYTE for rank, said in resident.items()
    )
    return has_all and len(rates) == len(RANKS)


def resident_of_ranks(job: Job) -> dict[int | None, int]:
    """What each rank says of its memory."""
    lines = job.logs(stream="stdout")
    return {line.rank: int(line.data.split()[1]) for line in lines if line.data.startswith(b"resident")}


def do_all_train(job: Job) -> bool:
    """Whether each rank has told of its steps."""
    return len(ranks_with_steps(trace.make(job.started))) == len(RANKS)


@pytest.mark.law("T1")
def test_each_rank_is_measured_by_itself(running):
    wait_for(lambda: are_measured(running))  # the busier the machine, the more rarely that happens
    assert running.status == "InProgress"
    resident, memory, hosts = resident_of_ranks(running), memory_of_ranks(running), running.hosts
    assert {rank: host for rank, (host, _) in memory.items()} == {rank: hosts[rank // 2] for rank in RANKS}
    assert {rank: used for rank, (_, used) in memory.items()} == pytest.approx(resident, abs=16 * MEGABYTE)
    running.stop()
    running.wait()
    found = running.machines()
    assert {(one.host, one.metric) for one in found.series} >= {
        (host, metric)
        for host in hosts
        for metric in ("system.cpu.utilization", "system.memory.usage", "system.network.io", "process.cpu.utilization")
    }
    times = [time for one in found.series for time in one.times]
    assert running.created <= min(times) + found.resolution and max(times) <= running.ended + found.resolution
    limit = next(one.high[-1] for one in found.series if one.metric == "system.memory.limit")
    used = [value for one in found.series if one.metric == "system.memory.usage" for value in one.high]
    assert all(0 < value <= limit for value in used)


@pytest.mark.law("T2")
def test_what_a_script_says_of_its_model_is_read_by_rank_and_step(running):
    expected = {
        **{("loss", rank): [(10.0 * step, rank + 1 / step) for step in STEPS] for rank in RANKS},
        **{("printed", rank): [(10.0 * step, float(rank + step)) for step in STEPS] for rank in RANKS},
        **{("defined", rank): [(float(step), float(rank * step)) for step in STEPS] for rank in RANKS},
    }
    wait_for(lambda: curves_of(running) == expected)
    assert running.status == "InProgress"
    running.stop()
    running.wait()
    assert curves_of(running) == expected


@pytest.mark.law("T1")
def test_a_window_has_every_step_of_each_rank_by_one_clock(script, monkeypatch):
    monkeypatch.setattr(window, "CLOCK_SECONDS", SECONDS)
    job = script.estimator(TRAINS, hosts=2, processes=2).fit(wait=False)
    try:
        wait_for(lambda: do_all_train(job), otherwise=job.why)
        found = window.record(job.started, 3.0)
        assert job.status == "InProgress"
    finally:
        job.stop()
        job.wait()
    steps: dict[tuple[int, int], list[int]] = {}
    for each in found.trace["traceEvents"]:
        if each.get("cat") == "steps":
            steps.setdefault((each["pid"], each["tid"]), []).append(int(each["name"].removeprefix("step ")))
    assert steps.keys() == {(rank // 2 + 1, rank + 1) for rank in RANKS}
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) for numbers in steps.values())
    assert found.trace["otherData"]["clock_offsets"].keys() == {"algo-2"}
    assert found.kept is not None and found.kept.endswith(window.FILE)
