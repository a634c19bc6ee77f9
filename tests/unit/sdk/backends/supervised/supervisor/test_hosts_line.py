import signal

import pytest
from estimator_container.contract.names import Layout
from estimator_container.host.coordination.platform_line import HereWire
from estimator_container.mesh import pulse
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.supervised.supervisor.hosts_line import (
    FIRST_WORD_BEATS,
    FIRST_WORD_SECONDS,
    MISSED_BEATS,
    SILENT_SECONDS,
    FirstWord,
    LineHere,
)
from tests.waiting import SECONDS

BEAT = 0.002  # seconds


@pytest.fixture
def loop(monkeypatch):
    monkeypatch.setattr(pulse, "BEAT_SECONDS", BEAT)
    yield Loop()
    signal.set_wakeup_fd(-1)


@pytest.fixture
def ends(loop, tmp_path):
    """The supervisor's line, that of the host, and when the supervisor missed it."""
    layout, silences = Layout(str(tmp_path)), []
    line = LineHere(loop, layout, lambda *_: None, lambda: silences.append(True), comes_soon=True)
    host = HereWire(loop, layout.platform, lambda message: None, lambda: None)
    loop.run_until(lambda: line.is_up, 5)
    yield line, host, silences
    host.close()
    line.close()


def pass_silently(loop, silences):
    loop.run_until(lambda: bool(silences), 2 * MISSED_BEATS * BEAT)
    return not silences


def test_any_host_that_can_tell_has_told_long_before_the_supervisor():
    assert 10 * pulse.silent_seconds(pulse.MISSED_BEATS) < SILENT_SECONDS


def test_a_host_that_beats_is_not_silent(loop, ends):
    _, host, silences = ends
    host.begin_to_beat()
    assert pass_silently(loop, silences)


def test_a_host_that_has_sent_beats_and_sends_no_more_is_silent_once(loop, ends):
    _, host, silences = ends
    host.begin_to_beat()
    loop.run_until(lambda: False, 3 * BEAT)
    host._pulse.stop()  # as a host that is frozen
    loop.run_until(lambda: bool(silences), SECONDS)
    loop.run_until(lambda: False, 2 * MISSED_BEATS * BEAT)
    assert silences == [True]


def test_a_host_that_prepares_or_whose_toolkit_never_beats_is_not_silent(loop, ends):
    _, host, silences = ends
    host._pulse.stop()
    assert pass_silently(loop, silences)


def test_a_host_that_has_ended_is_not_silent(loop, ends):
    line, host, silences = ends
    host.begin_to_beat()
    loop.run_until(lambda: False, 3 * BEAT)
    host.close()
    loop.run_until(lambda: not line.is_up, 5)
    assert pass_silently(loop, silences)


def test_a_line_that_is_closed_expects_nothing(loop, ends):
    line, host, silences = ends
    host.begin_to_beat()
    loop.run_until(lambda: False, 3 * BEAT)
    line.close()
    assert pass_silently(loop, silences)


def test_a_host_that_is_started_and_never_comes_is_silent_once_and_has_not_come(loop, tmp_path):
    silences = []
    line = LineHere(loop, Layout(str(tmp_path)), lambda *_: None, lambda: silences.append(True), comes_soon=True)
    loop.run_until(lambda: bool(silences), SECONDS)
    loop.run_until(lambda: False, 2 * FIRST_WORD_BEATS * BEAT)
    assert (silences, line.has_come) == ([True], False)
    line.close()


@pytest.mark.parametrize("is_closed", [False, True])
def test_one_that_may_take_its_time_or_that_nobody_waits_for_is_not(loop, tmp_path, is_closed):
    silences = []
    line = LineHere(loop, Layout(str(tmp_path)), lambda *_: None, lambda: silences.append(True), comes_soon=is_closed)
    if is_closed:
        line.close()
    loop.run_until(lambda: bool(silences), 2 * FIRST_WORD_BEATS * BEAT)
    assert silences == []
    line.close()


def test_a_host_that_has_come_has_said_its_first_word(loop, ends):
    line, _, silences = ends
    loop.run_until(lambda: bool(silences), 2 * FIRST_WORD_BEATS * BEAT)
    assert (silences, line.has_come) == ([], True)


def test_the_time_for_the_first_word_begins_with_the_start_and_again_while_the_toolkit_is_not_seen_to_run(loop):
    silences, asked = [], []
    word = FirstWord(loop, lambda: silences.append(True), lambda: bool(asked.append(True)) or len(asked) == 2)
    loop.run_until(lambda: bool(asked), 2 * FIRST_WORD_BEATS * BEAT)
    assert asked == []
    word.expect()
    loop.run_until(lambda: bool(silences), SECONDS)
    assert (len(asked), silences) == (2, [True])


def test_a_toolkit_has_more_time_for_its_first_word_than_for_any_other():
    assert FIRST_WORD_SECONDS > SILENT_SECONDS
