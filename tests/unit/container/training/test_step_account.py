"""Where the time between the ends of steps goes, by a clock that is set by hand."""

import os
import threading

import pytest
from estimator_container.training import step_account, step_clock
from estimator_container.training.page import COMMUNICATION, INPUT, LAST, read_times
from estimator_container.training.step_clock import StepClock

MS = 1_000_000


class Rank:
    """A rank whose time passes as the test says."""

    def __init__(self, host, monkeypatch):
        self.host = host
        self.now = self.cpu = 1000 * MS
        self.looks = 0
        monkeypatch.setattr(step_clock, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(step_account, "monotonic_ns", self.clock)
        monkeypatch.setattr(step_account, "process_time_ns", self.cpu_clock)
        self.page = host.open()
        self.steps = StepClock(self.page)
        self.account = self.steps.account

    def clock(self):
        self.looks += 1
        return self.now

    def cpu_clock(self):
        self.looks += 1
        return self.cpu

    def compute(self, ms, cpu=1.0):
        self.now += ms * MS
        self.cpu += round(cpu * ms * MS)

    def spend(self, kind, ms, cpu=0.0):
        self.account.begin(kind)
        self.compute(ms, cpu)
        self.account.end()

    def step(self, **spent):
        kinds = {"input": INPUT, "communication": COMMUNICATION}
        for kind, ms in spent.items():
            self.compute(ms) if kind == "work" else self.spend(kinds[kind], ms)
        self.steps.count(self)

    def told(self):
        (found,) = read_times(str(self.host.pages))
        return {fact: value / MS for fact, value in found._asdict().items() if fact in SPENT and value is not None}


SPENT = ("time", "input", "communication", "checkpoint", "idle")


@pytest.fixture
def rank(host, monkeypatch):
    return Rank(host, monkeypatch)


def test_time_counts_from_the_end_of_the_first_step(rank):
    rank.step(input=900, work=5000)
    for _ in range(10):
        rank.step(input=30, work=100, communication=20)
    assert rank.told() == {"time": 1500, "input": 300, "communication": 200, "idle": 0}
    (found,) = read_times(str(rank.host.pages))
    assert (found.rank, found.steps, found.pid) == (3, 10, os.getpid())


def test_after_one_step_nothing_is_told(rank):
    rank.step(input=900, work=5000)
    assert read_times(str(rank.host.pages)) == []


def test_what_has_not_been_seen_is_not_known(rank):
    for _ in range(3):
        rank.step(work=100)
    assert rank.told() == {"time": 200, "idle": 0}


def test_what_begins_within_something_else_is_a_part_of_it(rank):
    rank.step()
    rank.account.begin(INPUT)
    rank.compute(40)
    rank.spend(COMMUNICATION, 50)
    rank.account.end()
    rank.step(work=110)
    assert rank.told()["input"] == 90
    assert "communication" not in rank.told()


def test_other_threads_spend_nothing_of_a_step(rank):
    rank.step()
    rank.account.begin(INPUT)
    thread = threading.Thread(target=rank.spend, args=(COMMUNICATION, 50))
    thread.start()
    thread.join()
    rank.account.end()
    rank.step(work=100)
    assert rank.told() == {"time": 150, "input": 50, "idle": 0}


def test_time_without_cpu_that_is_nothing_else_is_idle(rank):
    rank.step()
    for _ in range(4):
        rank.spend(INPUT, 100)
        rank.compute(60, cpu=1.0)
        rank.compute(140, cpu=0.0)
        rank.step()
    assert rank.told() == {"time": 1200, "input": 400, "idle": 560}


def test_cpu_that_waiting_takes_hides_no_idleness(rank):
    rank.step()
    for _ in range(4):
        rank.spend(INPUT, 100, cpu=1.0)
        rank.compute(100, cpu=0.0)
        rank.step()
    assert rank.told() == {"time": 800, "input": 400, "idle": 400}


def test_short_steps_are_looked_at_now_and_then_and_stand_for_all(rank):
    rank.step()
    for _ in range(1000):
        rank.spend(INPUT, 1)
        rank.compute(4, cpu=0.5)
        rank.step()
    told = rank.told()
    assert told["time"] >= 4850
    assert told["input"] == pytest.approx(told["time"] / 5)
    assert told["idle"] == pytest.approx(2 / 5 * told["time"], rel=0.01)


def test_where_an_accelerator_works_nobody_is_called_idle(rank):
    rank.account.knows_idle = False
    for _ in range(3):
        rank.compute(200, cpu=0.0)
        rank.step()
    assert rank.told() == {"time": 400}


def test_what_a_gauge_has_at_the_first_step_is_left_out(rank):
    spent = 700
    rank.account.add_gauge(COMMUNICATION, lambda: spent * MS)
    rank.step(work=1000)
    for _ in range(5):
        spent += 40
        rank.step(work=140)
    assert rank.told() == {"time": 700, "communication": 200, "idle": 0}


def test_a_child_of_the_rank_writes_nothing(rank):
    rank.step(work=100)
    rank.steps.stop()
    rank.step(work=200)
    rank.step(work=200)
    assert rank.page[LAST] == 1100 * MS
    assert read_times(str(rank.host.pages)) == []


def test_a_step_of_a_few_milliseconds_reads_the_clock_twice_for_what_it_waits_for(rank):
    """So much that can be counted; what it costs is in docs/doctor.md."""
    rank.step()
    rank.looks = 0
    for _ in range(1000):
        rank.step(input=1, work=4)
    close = 5000 // 100  # looks at a step more closely, each of them a few times more
    assert 2000 <= rank.looks <= 2000 + 5 * close
