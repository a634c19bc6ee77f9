import heapq
import itertools
import socket

import pytest
from estimator_container.mesh import pulse
from estimator_container.mesh.pulse import (
    ASK_SECONDS,
    BEAT_SECONDS,
    MISSED_BEATS,
    PATIENT_BEATS,
    Pulse,
    Reach,
    ask,
    silent_seconds,
)
from estimator_container.runtime import machine
from estimator_container.runtime.loop import Timer

from tests.waiting import SECONDS

SILENT_SECONDS = silent_seconds(MISSED_BEATS)


class Machine:
    """A machine's clock, as far as the test has turned it."""

    def __init__(self):
        self.now = 0.0
        self.due = []
        self.order = itertools.count()

    def run(self, seconds):
        until = self.now + seconds
        while self.due and self.due[0][0] <= until:
            self.now, _, callback = heapq.heappop(self.due)
            callback()
        self.now = until


class End:
    """One end of a connection, and when it gave the other one up; it gets a CPU as the test says."""

    def __init__(self, machine, missed_beats=MISSED_BEATS):
        self._machine = machine
        self._kept_until = 0.0
        self.sent, self.silences = [], []
        self.other = None
        told = self.silences.append
        self.pulse = Pulse(self, self._send, lambda: told(machine.now), missed_beats, lambda: machine.now)

    def is_kept_from_its_cpu(self, seconds):
        self._kept_until = self._machine.now + seconds

    def after(self, seconds, callback):
        timer = Timer(callback)
        self._push(self._machine.now + seconds, lambda: timer.callback and timer.callback())
        return timer

    def hears(self, strain):
        """What has come is read before anything else that is due, as by the loop."""
        self._push(self._machine.now, lambda: self.pulse.heard_beat(strain))

    def _push(self, when, callback):
        def run():
            if self._machine.now < self._kept_until:
                heapq.heappush(self._machine.due, (self._kept_until, next(self._machine.order), run))
            else:
                callback()

        heapq.heappush(self._machine.due, (when, next(self._machine.order), run))

    def _send(self, strain):
        self.sent.append(strain)
        if self.other is not None:
            self.other.hears(strain)


@pytest.fixture
def machine_time():
    return Machine()


@pytest.fixture
def end(machine_time):
    return End(machine_time)


@pytest.fixture
def ends(machine_time):
    """Both ends of a connection, which beat."""
    two = End(machine_time), End(machine_time)
    for one, other in (two, two[::-1]):
        one.other = other
        one.pulse.begin()
    machine_time.run(1.1)
    return two


def test_an_end_that_is_ready_beats_and_one_that_is_not_does_not(machine_time, end):
    machine_time.run(2.5 * BEAT_SECONDS)
    assert end.sent == []
    end.pulse.begin()
    machine_time.run(2.5 * BEAT_SECONDS)
    assert 3 <= len(end.sent) <= 4


def test_beats_come_by_the_loop_too(loop):
    sent = []
    beating = Pulse(loop, sent.append, lambda: None)
    beating.begin()
    loop.run_until(lambda: len(sent) >= 3, SECONDS)
    beating.stop()
    assert len(sent) == 3


def test_nobody_is_missed_before_its_first_beat(machine_time, end):
    end.pulse.heard()
    machine_time.run((MISSED_BEATS + 2) * BEAT_SECONDS)
    assert end.silences == []


def test_an_end_that_is_to_begin_at_once_is_missed_if_it_never_does_and_has_more_time_for_that(machine_time, end):
    end.pulse.expect()
    machine_time.run((PATIENT_BEATS - 0.5) * BEAT_SECONDS)
    assert end.silences == []
    machine_time.run(BEAT_SECONDS)
    assert len(end.silences) == 1


def test_an_end_that_has_begun_late_is_missed_as_soon_as_any(machine_time, end):
    end.pulse.expect()
    machine_time.run((PATIENT_BEATS - 0.5) * BEAT_SECONDS)
    end.pulse.heard_beat()
    machine_time.run((MISSED_BEATS + 1) * BEAT_SECONDS)
    assert len(end.silences) == 1


def test_silence_after_a_beat_is_told_once_and_in_time(machine_time, end):
    machine_time.run(1.7 * BEAT_SECONDS)
    end.pulse.heard_beat()
    began = machine_time.now
    machine_time.run(100)
    (silence,) = end.silences
    assert SILENT_SECONDS <= silence - began <= SILENT_SECONDS + BEAT_SECONDS


def test_any_word_counts(machine_time, end):
    end.pulse.heard_beat()
    for _ in range(MISSED_BEATS + 1):
        machine_time.run(BEAT_SECONDS)
        end.pulse.heard()
    assert end.silences == []


def test_who_was_held_up_accuses_nobody(machine_time, end):
    end.pulse.heard_beat()
    end.is_kept_from_its_cpu((MISSED_BEATS + 2) * BEAT_SECONDS)  # or the machine is paused, or a disk does not answer
    machine_time.run((MISSED_BEATS + 2.5) * BEAT_SECONDS)
    assert end.silences == []


def test_an_end_knows_for_a_while_that_it_was_held_up_and_before_its_next_beat_too(machine_time, end):
    machine_time.run(0.5 * BEAT_SECONDS)
    assert not end.pulse.was_held_up
    end.is_kept_from_its_cpu((MISSED_BEATS + 1) * BEAT_SECONDS)
    machine_time.run(MISSED_BEATS * BEAT_SECONDS)
    assert end.pulse.was_held_up
    machine_time.run(2 * BEAT_SECONDS)
    assert end.pulse.was_held_up
    machine_time.run(PATIENT_BEATS * BEAT_SECONDS)
    assert not end.pulse.was_held_up


def test_an_end_that_is_patient_waits_for_more_beats(machine_time):
    patient = End(machine_time, 2 * MISSED_BEATS)
    patient.pulse.heard_beat()
    machine_time.run((MISSED_BEATS + 1) * BEAT_SECONDS)
    assert patient.silences == []
    machine_time.run((MISSED_BEATS + 1) * BEAT_SECONDS)
    assert len(patient.silences) == 1


def freeze(end):
    end.is_kept_from_its_cpu(1e9)


def test_a_frozen_end_on_an_idle_machine_is_noticed_in_time(machine_time, ends):
    one, other = ends
    freeze(other)
    began = machine_time.now
    machine_time.run(100)
    assert SILENT_SECONDS <= one.silences[0] - began <= SILENT_SECONDS + BEAT_SECONDS


@pytest.mark.parametrize("starved", [(0,), (1,), (0, 1)], ids=["the-one", "the-other", "both"])
def test_ends_that_get_their_cpu_later_and_later_are_not_frozen(machine_time, ends, starved):
    for kept in (0.2, 0.5, 1.1, 2.6, 4.0, 3.0, 5.0, 1.0):
        for number in starved:
            ends[number].is_kept_from_its_cpu(kept)
        machine_time.run(kept + BEAT_SECONDS)
    assert [end.silences for end in ends] == [[], []]


def test_a_starved_end_that_is_frozen_then_is_noticed_later_but_is(machine_time, ends):
    one, other = ends
    other.is_kept_from_its_cpu(1.0)
    machine_time.run(1.6)
    freeze(other)
    began = machine_time.now
    machine_time.run(100)
    assert SILENT_SECONDS + BEAT_SECONDS < one.silences[0] - began <= PATIENT_BEATS * BEAT_SECONDS


def test_what_an_end_lacked_long_ago_does_not_count(machine_time, ends):
    one, other = ends
    other.is_kept_from_its_cpu(2.0)
    machine_time.run(60)
    freeze(other)
    began = machine_time.now
    machine_time.run(100)
    assert one.silences[0] - began <= SILENT_SECONDS + BEAT_SECONDS


@pytest.mark.parametrize("listens", [True, False])
def test_whoever_refuses_is_there(loop, monkeypatch, listens):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(pulse, "_DISCARD_PORT", server.getsockname()[1])
        if not listens:
            server.close()
        answers = []
        ask(loop, "127.0.0.1", 5, answers.append)
        loop.run_until(lambda: bool(answers), 5)
    assert answers == [True]


def test_whoever_drops_what_is_sent_does_not_answer(loop, monkeypatch):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        monkeypatch.setattr(pulse, "_DISCARD_PORT", server.getsockname()[1])
        answers = []
        with socket.create_connection(server.getsockname()):  # with that the queue is full, and the kernel drops
            ask(loop, "127.0.0.1", 0.5, answers.append)
            loop.run_until(lambda: bool(answers), 5)
    assert answers == [False]


@pytest.mark.parametrize(
    ("answers", "is_cut_off"), [([False, False], True), ([False, True], False), ([True, False], False)]
)
def test_one_packet_that_a_network_loses_says_nothing(loop, monkeypatch, answers, is_cut_off):
    left, found = list(answers), []
    monkeypatch.setattr(pulse, "ask", lambda loop, gateway, seconds, then: then(left.pop(0)))
    reach = Reach(loop)
    reach._gateway = "192.0.2.1"
    reach.check(found.append)
    loop.run_until(lambda: bool(found), SECONDS)
    assert found == [is_cut_off]


def test_a_host_that_comes_late_to_ask_waits_for_both_answers(loop, monkeypatch):
    """As one that lacks CPU time: with one of them it would name the host that it does not hear."""
    found = []
    monkeypatch.setattr(
        pulse, "ask", lambda loop, gateway, seconds, then: loop.after(2 * ASK_SECONDS, lambda: then(False))
    )
    reach = Reach(loop)
    reach._gateway = "192.0.2.1"
    reach.check(found.append)
    loop.run_until(lambda: bool(found), SECONDS)
    assert found == [True]


def test_a_network_whose_gateway_never_answered_is_not_asked(loop, monkeypatch):
    monkeypatch.setattr(pulse, "ask", lambda loop, gateway, seconds, then: then(False))
    monkeypatch.setattr(pulse.machine, "gateway", lambda: "192.0.2.1")
    reach, found = Reach(loop), []
    reach.learn()
    reach.check(found.append)
    loop.run_until(lambda: bool(found), SECONDS)
    assert found == [False]


def test_the_gateway_is_an_address_or_nothing():
    assert machine.gateway() == "" or socket.inet_aton(machine.gateway())
