import socket
import time

import pytest
from estimator_container.mesh import pulse
from estimator_container.mesh.pulse import BEAT_SECONDS, MISSED_BEATS, Pulse, ask
from estimator_container.runtime import machine


@pytest.fixture
def end(loop):
    """One end of a connection: what it sends, and when it gave the other one up."""

    class End:
        def __init__(self):
            self.sent, self.silences = [], []
            self.pulse = Pulse(loop, lambda: self.sent.append("beat"), lambda: self.silences.append(time.monotonic()))

    made = End()
    yield made
    made.pulse.stop()


def test_an_end_that_is_ready_beats_and_one_that_is_not_does_not(loop, end):
    loop.run_until(lambda: False, 2.5 * BEAT_SECONDS)
    assert end.sent == []
    end.pulse.begin()
    loop.run_until(lambda: False, 2.5 * BEAT_SECONDS)
    assert 3 <= len(end.sent) <= 4


def test_nobody_is_missed_before_its_first_beat(loop, end):
    end.pulse.heard()
    loop.run_until(lambda: bool(end.silences), (MISSED_BEATS + 2) * BEAT_SECONDS)
    assert end.silences == []


def test_silence_after_a_beat_is_told_once_and_in_time(loop, end):
    end.pulse.heard_beat()
    began = time.monotonic()
    loop.run_until(lambda: bool(end.silences), 10)
    assert pulse.SILENT_SECONDS - 0.1 < end.silences[0] - began < pulse.SILENT_SECONDS + 2 * BEAT_SECONDS
    loop.run_until(lambda: False, 2 * BEAT_SECONDS)
    assert len(end.silences) == 1


def test_any_word_counts(loop, end):
    end.pulse.heard_beat()
    for _ in range(MISSED_BEATS + 1):
        loop.run_until(lambda: False, BEAT_SECONDS)
        end.pulse.heard()
    assert end.silences == []


def test_who_was_held_up_accuses_nobody(loop, end):
    end.pulse.heard_beat()
    time.sleep((MISSED_BEATS + 2) * BEAT_SECONDS)  # as a machine that is paused, or a disk that does not answer
    loop.run_until(lambda: False, BEAT_SECONDS / 2)
    assert end.silences == []


def test_an_end_that_is_patient_waits_for_more_beats(loop):
    silences = []
    patient = Pulse(loop, lambda: None, lambda: silences.append(True), 2 * MISSED_BEATS)
    patient.heard_beat()
    loop.run_until(lambda: bool(silences), (MISSED_BEATS + 1) * BEAT_SECONDS)
    assert silences == []
    loop.run_until(lambda: bool(silences), (MISSED_BEATS + 1) * BEAT_SECONDS)
    assert silences == [True]
    patient.stop()


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


def test_the_gateway_is_an_address_or_nothing():
    assert machine.gateway() == "" or socket.inet_aton(machine.gateway())
