"""When a host tells what its ranks have counted."""

import shutil

import pytest
from estimator_container.host.step_watch import OFTEN, TELL_SECONDS, StepWatch
from estimator_container.runtime.loop import Loop
from estimator_container.training.page import AT, AT_STEPS, FIRST, INPUT, KNOWN, LAST, PID, STEPS, open_page


class Events(list):
    emit = list.append


class Watched:
    """A host whose clock is set by hand."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.now = 100.0
        monkeypatch.setattr("estimator_container.host.step_watch.time", self)
        self.events = Events()
        self.heard = []
        self.pages = {}
        (folder / "place").write_text(str(folder))
        self.watch = StepWatch(Loop(), self.events, str(folder), self.monotonic_ns(), self.heard.append)

    def monotonic(self):
        return self.now

    def monotonic_ns(self):
        return round(self.now * 1e9)

    def time_ns(self):
        return self.monotonic_ns() + 1000 * 10**9

    def step(self, rank, pid=7):
        page = self.pages.setdefault(rank, open_page(str(self.folder / "place"), str(rank)))
        if page[PID] != pid:
            page[PID], page[STEPS] = pid, 0
        page[STEPS] += 1
        page[LAST] = self.monotonic_ns()
        if page[STEPS] == 1:
            page[FIRST] = page[LAST]

    def wait(self, rank, seconds):
        """A step of the rank in which it has waited for input, which it has written down."""
        self.step(rank)
        page = self.pages[rank]
        page[INPUT] += round(seconds * 1e9)
        page[AT], page[AT_STEPS], page[KNOWN] = page[LAST], page[STEPS], 1 << INPUT

    def look(self, seconds=1.0):
        self.now += seconds
        self.watch._look()

    @property
    def told(self):
        return [dict(zip(event.ranks, event.steps)) for event in self.events if event.name == "training_steps"]

    @property
    def times(self):
        return [event for event in self.events if event.name == "step_times"]


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Watched(tmp_path, monkeypatch)


def test_nothing_is_told_of_ranks_that_train_nothing(host):
    host.look()
    host.watch.close()
    assert host.events == []


def test_the_first_step_of_a_rank_is_told_at_once_and_others_every_few_seconds(host):
    for _ in range(11):
        host.step(0)
        host.look()
    assert host.told == [{0: 1}, {0: 6}, {0: 11}]
    assert TELL_SECONDS == 5.0


def test_the_last_step_is_told_with_the_end_of_the_rank(host):
    host.step(0), host.step(1)
    host.look()
    host.step(0), host.step(1)
    host.watch.rank_ended(0)
    host.watch.rank_ended(0)
    host.watch.close()
    assert host.told == [{0: 1, 1: 1}, {0: 2}, {1: 2}]


def test_times_are_those_of_the_calendar(host):
    host.now += 1
    host.step(0)
    host.now += 2
    host.step(0)
    host.look()
    (event,) = host.events
    assert (event.first, event.last) == ([1101.0], [1103.0])


def test_another_process_of_a_rank_is_told_at_once(host):
    host.step(0)
    host.look()
    host.step(0, pid=8)
    host.look()
    assert host.told == [{0: 1}, {0: 1}]


def test_what_an_earlier_attempt_has_counted_is_not_told(host):
    host.now -= 50
    host.step(0)
    host.now += 50
    host.look()
    assert host.events == []


def test_whoever_compares_the_ranks_hears_of_every_look(host):
    for _ in range(3):
        host.step(0)
        host.look()
    host.look()
    assert [[count.steps for count in counts] for counts in host.heard] == [[1], [2], [3], [3]]


def test_where_the_time_of_steps_goes_is_told_every_second_at_first(host):
    host.step(0)
    for _ in range(3):
        host.wait(0, 0.25)
        host.look()
    assert [(event.steps, event.seconds, event.input) for event in host.times] == [
        ([1], [0.0], [0.25]),
        ([2], [1.0], [0.5]),
        ([3], [2.0], [0.75]),
    ]
    assert host.times[0].communication == host.times[0].checkpoint == host.times[0].idle == [None]


def test_and_every_few_seconds_later_however_long_a_job_runs(host):
    host.step(0)
    for _ in range(OFTEN + 100):
        host.wait(0, 0.1)
        host.look()
    assert len(host.times) <= OFTEN + 100 / TELL_SECONDS + 1


def test_it_is_told_with_the_end_of_a_rank_too(host):
    host.step(0), host.step(1)
    host.wait(0, 0.1), host.wait(1, 0.1)
    host.look()
    host.now += 1
    host.wait(0, 0.1), host.wait(1, 0.2)
    host.watch.rank_ended(1)
    host.watch.close()
    assert [(event.ranks, event.steps) for event in host.times] == [([0, 1], [1, 1]), ([1], [2]), ([0], [2])]


def test_a_folder_that_something_has_removed_holds_nothing(host):
    """As a script does that tidies up in /dev/shm."""
    shutil.rmtree(host.folder)
    host.watch._look()
    host.watch.close()
    assert host.events == []
