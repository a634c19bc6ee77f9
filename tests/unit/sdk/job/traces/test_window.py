"""Asking a job that runs for a window: what the hosts' and the ranks' own sides leave, in one process."""

import json
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.contract.names import Layout
from estimator_container.host.windows import Windows
from estimator_container.runtime.loop import Loop
from estimator_container.training import page
from estimator_container.training.step_clock import StepClock
from estimator_container.training.window import Window

from estimator_sdk import EstimatorError, InvalidArgument
from estimator_sdk.backends.supervised.job_folder import windows
from estimator_sdk.job.traces import window
from estimator_sdk.values.home import JobFolder


def at_once(work, then):
    """As where no network may keep the job's files from answering."""
    then(work())


class Running:
    """A job of two hosts with a rank each, which do what they do while somebody waits for it."""

    name = "a"

    def __init__(self, folder):
        self._folder = JobFolder(folder)
        self.status = SimpleNamespace(is_final=False, hosts=("algo-1", "algo-2"), backend="process")
        self.trains = True
        self._loop = Loop()
        self._layouts = [Layout(str(self._folder.host(host))) for host in self.status.hosts]
        self._windows, self._clocks = [], []
        for rank, layout in enumerate(self._layouts):
            for part in ("input/config", "output/logs", "output/data", "pages"):
                Path(layout.base, part).mkdir(parents=True)
            Path(layout.training_steps).write_text(f"{layout.base}/pages")
            self._windows.append(Windows(self._loop, at_once, layout, f"{layout.base}/pages", lambda: None))
            kept = page.open_page(layout.training_steps, str(rank))
            self._clocks.append(StepClock(kept, partial(Window, layout.timelines, rank)))

        compared = Path(self._layouts[0].clocks)
        compared.parent.mkdir(exist_ok=True)
        compared.write_text('{"algo-2": {"offset": 0.0, "within": 0.001}}')

    def log_files(self):
        return [Path(layout.frames) for layout in self._layouts]

    def record(self):
        return self.status

    def ask_for_window(self, request):
        windows.ask(self._folder, self.status.hosts, request)

    def withdraw_window(self):
        windows.withdraw(self._folder, self.status.hosts)

    def add_output(self, name, text):
        return windows.add_output(self._folder, self.status.hosts[0], name, text)

    def wait(self, seconds):
        for of_host, clock in zip(self._windows, self._clocks, strict=True):
            of_host.look()
            if self.trains:
                clock.mark_explicitly(None)
        self._loop.run_until(lambda: False, 0.01)


@pytest.fixture
def job(tmp_path):
    return Running(tmp_path)


def test_the_steps_of_all_ranks_are_there_and_kept_among_the_outputs(job, tmp_path):
    found = window.record(job, 0.1)
    steps = [(each["pid"], each["tid"]) for each in found.trace["traceEvents"] if each.get("cat") == "steps"]
    assert set(steps) == {(1, 1), (2, 2)}
    assert found.notes == ("rank 0, rank 1: neither Horovod nor PyTorch runs in it, so there are its steps alone",)
    kept = tmp_path / "hosts" / "algo-1" / "output" / "data" / "horovod_timeline.json"
    assert (found.kept, window.kept(job)) == (str(kept), kept)
    assert json.loads(kept.read_text()) == found.trace
    window.record(job, 0.1)  # another one takes its place


def test_a_link_that_a_job_left_is_not_written_through(job, tmp_path):
    place = tmp_path / "hosts" / "algo-1" / "output" / "data" / "horovod_timeline.json"
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for path in (place, place.with_name(f"{place.name}.new")):
        path.symlink_to(mine)
    assert window.kept(job) is None
    assert window.record(job, 0.05).kept == str(place)
    assert mine.read_text() == "mine" and not place.is_symlink()


def test_a_job_in_which_no_rank_counts_steps_is_said_to_be_one(job, tmp_path):
    job.trains = False
    for steps in tmp_path.glob("hosts/*/pages/*"):
        steps.unlink()
    with pytest.raises(EstimatorError, match=r"no rank of a counts its training steps so far.*mark_step"):
        window.record(job, 0.05)


def test_a_rank_that_ends_no_step_in_time_is_named(job, monkeypatch):
    monkeypatch.setattr(window, "LATE_SECONDS", 5.0)
    write = Window._write
    monkeypatch.setattr(Window, "_write", lambda self, ended: self._rank == 1 or write(self, ended))
    found = window.record(job, 0.1)
    assert found.notes[0] == "rank 1 on algo-2 ended no step in which a window could begin and end"


def test_clocks_that_are_compared_late_are_waited_for_and_others_are_named(job, tmp_path, monkeypatch):
    (compared,) = tmp_path.glob("hosts/algo-1/**/clocks.json")
    monkeypatch.setattr(window, "CLOCK_SECONDS", 0.1)
    text, collect = compared.read_text(), window._collect
    compared.unlink()
    note = "the clock of algo-1 was not compared with that of algo-2, whose steps may be shifted"
    assert window.record(job, 0.05).notes[0] == note

    def collected(*arguments):
        threading.Timer(0.5, compared.write_text, [text]).start()
        return collect(*arguments)

    monkeypatch.setattr(window, "CLOCK_SECONDS", 60.0)
    monkeypatch.setattr(window, "_collect", collected)
    found = window.record(job, 0.05)
    assert set(found.trace["otherData"]["clock_offsets"]) == {"algo-2"}
    assert note not in found.notes


@pytest.mark.parametrize("seconds", [0.0, -1.0, 601.0, float("nan"), float("inf")])
def test_times_that_are_none_are_refused(job, seconds):
    with pytest.raises(InvalidArgument, match="seconds must be more than 0 and at most 600"):
        window.record(job, seconds)


def test_a_job_that_has_ended_is_said_to_have(job):
    job.status.is_final = True
    with pytest.raises(EstimatorError, match=r"a has ended, .*without --seconds"):
        window.record(job, 1.0)


def test_a_host_that_is_not_there_yet_is_named_and_no_other_stays_asked(job, tmp_path):
    (tmp_path / "hosts" / "algo-2" / "input" / "config").rename(tmp_path / "away")
    with pytest.raises(EstimatorError, match="algo-2 of .* is not there yet"):
        window.record(job, 1.0)
    assert not list(tmp_path.glob("hosts/*/input/config/*"))


def test_a_job_whose_hosts_cannot_be_asked_is_said_to_be_one(job):
    asked = SimpleNamespace(name=job.name, record=job.record, log_files=job.log_files)
    with pytest.raises(EstimatorError, match="a runs on process, where the hosts of a job cannot be asked"):
        window.record(asked, 1.0)


def test_hosts_that_know_of_no_windows_are_named_and_nothing_is_left(job, tmp_path, monkeypatch):
    monkeypatch.setattr(window, "BEGIN_SECONDS", 0.1)
    monkeypatch.setattr(Windows, "look", lambda self: None)
    with pytest.raises(EstimatorError, match="algo-1, algo-2 did not begin the window in 0.1 s: another window is"):
        window.record(job, 1.0)
    assert not list(tmp_path.glob("hosts/*/input/config/*"))
    (tmp_path / "hosts" / "algo-1" / "output" / "training-steps").unlink()
    with pytest.raises(EstimatorError, match="its ranks have not begun, or another window is recorded"):
        window.record(job, 1.0)


def test_a_second_one_is_refused_until_the_first_has_begun(job, tmp_path, monkeypatch):
    monkeypatch.setattr(Windows, "look", lambda self: None)
    request = tmp_path / "hosts" / "algo-1" / "input" / "config" / "timeline"
    request.write_text("{}")
    with pytest.raises(EstimatorError, match=r"another window of .* was asked for"):
        window.record(job, 1.0)
    assert request.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"files": []}',
        "[" * 100_000,
        '{"rank": 1, "files": {}, "said": [], "steps": [], "began": 1, "ended": NaN}',
        '{"rank": 1, "files": {}, "said": [], "steps": [[1e999, 1]], "began": 1, "ended": 2}',
    ],
    ids=lambda text: text[-30:],
)
def test_what_a_script_puts_in_the_place_of_a_record_is_none(text, tmp_path):
    path = tmp_path / "7-1.json"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError, LookupError)):
        window.RankRecord.read("algo-1", path)
