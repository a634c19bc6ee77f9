"""What the supervisor hears of toolkits on other machines, and when."""

from __future__ import annotations

import signal

import pytest
from estimator_container.failures.verdict import of_lost_host
from estimator_container.host.coordination import platform_line as platform
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.supervised.supervisor.toolkits import Toolkits

FOUND = of_lost_host("algo-2", "algo-1")


@pytest.fixture
def toolkits():
    made = Toolkits(Loop(), ("algo-1", "algo-2"), b"secret")
    yield made
    signal.set_wakeup_fd(-1)


def _line(toolkits: Toolkits, told: list[str]):
    line = toolkits.line_to("algo-1", lambda found, address, lost: told.append(address), lambda: None)
    toolkits.on_joined("algo-1")
    return line


def _ask(toolkits: Toolkits, address: str) -> None:
    toolkits.on_message("algo-1", [platform.FAILED, FOUND.to_json(), address, "algo-2"])


def test_a_host_has_asked_until_all_that_it_asked_may_be_told(toolkits):
    told: list[str] = []
    line, waiting = _line(toolkits, told), []
    toolkits.before_failed = waiting.append
    assert not line.has_asked
    for address in ("10.0.0.1:4711", "10.0.0.1:4712"):
        _ask(toolkits, address)
    waiting.pop(0)()
    assert (line.has_asked, told) == (True, ["10.0.0.1:4711"])
    waiting.pop(0)()
    assert (line.has_asked, told) == (False, ["10.0.0.1:4711", "10.0.0.1:4712"])


def test_a_host_that_has_ended_asks_nothing(toolkits):
    line = _line(toolkits, [])
    toolkits.before_failed = lambda then: None
    _ask(toolkits, "10.0.0.1:4711")
    assert line.has_asked
    toolkits.ended("algo-1")
    assert not line.has_asked


def test_what_a_host_has_asked_is_not_told_of_the_one_in_its_place(toolkits):
    told: list[str] = []
    line, waiting = _line(toolkits, told), []
    toolkits.before_failed = waiting.append
    _ask(toolkits, "10.0.0.1:4711")
    line.close()
    _line(toolkits, told)
    waiting.pop()()
    assert told == []
