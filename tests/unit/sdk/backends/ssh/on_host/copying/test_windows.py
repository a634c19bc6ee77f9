"""Requests for a window of the timeline, on their way from a job's folder to hosts on other machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from estimator_container.contract.names import Layout
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host.copying import windows
from estimator_sdk.backends.ssh.on_host.copying.arriving import ArrivingFiles
from estimator_sdk.backends.ssh.on_host.copying.trees import piece
from estimator_sdk.backends.supervised.job_folder.windows import ask, withdraw
from estimator_sdk.values.home import JobFolder

HOSTS = ("algo-1", "algo-2")


@pytest.fixture
def folder(tmp_path):
    made = JobFolder(tmp_path / "job")
    for host in HOSTS:
        (made.host(host) / "input/config").mkdir(parents=True)
    return made


@pytest.fixture
def sent(folder):
    """Call it for what hosts that are elsewhere have been asked so far; algo-1 is here."""
    loop, found = Loop(), []
    requests = windows.WindowRequests(loop, lambda host, request: found.append((host, request)))
    requests.watch("algo-2", Layout(str(folder.host("algo-2"))))

    def now():
        loop.run_until(lambda: False, 0.02)
        return found

    yield now
    requests.close()


def test_only_hosts_that_are_elsewhere_are_told_and_also_that_nothing_is_asked_any_more(folder, sent):
    ask(folder, HOSTS, "one")
    assert sent() == [("algo-2", "one")]
    withdraw(folder, HOSTS)
    assert sent() == [("algo-2", "one"), ("algo-2", "")]
    ask(folder, HOSTS, "two")
    assert sent()[2:] == [("algo-2", "two")]


def test_the_first_file_of_a_window_answers_the_request(folder, sent):
    ask(folder, HOSTS, "one")
    assert sent() == [("algo-2", "one")]
    arriving = ArrivingFiles(Loop(), folder, lambda *_: None, lambda host, error: pytest.fail(str(error)))
    request = Path(Layout(str(folder.host("algo-2"))).timeline_request)
    for name in ("clocks.json", "17-0.json", "17-0.torch.json"):
        arriving.take("algo-2", list(piece(f"output/logs/timelines/{name}", 0, b"{}")))
    assert request.exists()
    arriving.take("algo-2", list(piece("output/logs/timelines/17.json", 0, b"{}")))
    assert not request.exists()
    assert sent()[-1] == ("algo-2", "")


def test_a_host_finds_the_request_and_its_end(tmp_path):
    layout = Layout(str(tmp_path))
    request = Path(layout.timeline_request)
    windows.put(layout, "no folder yet")
    request.parent.mkdir(parents=True)
    windows.put(layout, "one")
    assert request.read_text() == "one"
    windows.put(layout, "")
    windows.put(layout, "")
    assert list(request.parent.iterdir()) == []
