"""A file system that does not answer is a pipe here that nobody reads, and that is full."""

import json
import os
import threading
import time

import pytest
from estimator_container.contract.events import PhaseStarted
from estimator_container.logs.aside import FramesAside
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import EVENT, NO_RANK, TOOLKIT, FrameParser, FrameWriter

from tests.waiting import SECONDS


class Pipe:
    """A file that takes nothing until it is read, and what it has taken then."""

    def __init__(self, path):
        self.path, self.frames = path, []
        os.mkfifo(path)
        self.fd, self._parser = os.open(path, os.O_RDONLY | os.O_NONBLOCK), FrameParser()
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.close(writer)

    def read_to_end(self):
        os.set_blocking(self.fd, True)
        while piece := os.read(self.fd, 1 << 16):  # until nobody can write any more
            self.frames += self._parser.feed(piece)


@pytest.fixture
def pipe(tmp_path):
    made = Pipe(str(tmp_path / "frames"))
    yield made
    os.close(made.fd)


def test_nobody_waits_for_a_file_system_that_hangs_and_nothing_is_lost(pipe):
    events = EventLog(FramesAside(FrameWriter(pipe.path)))
    before = time.time_ns()
    events.emit(PhaseStarted("run"))
    events.say("a line")
    after = time.time_ns()
    events.flush(0.1)  # it waits no longer
    reading = threading.Thread(target=pipe.read_to_end, daemon=True)
    reading.start()
    events.flush(60)
    events.go_on_in(FrameWriter("/dev/null"))
    reading.join(SECONDS)
    event, line = pipe.frames
    assert (event.rank, event.stream, json.loads(event.data)["phase"]) == (NO_RANK, EVENT, "run")
    assert (line.stream, line.data) == (TOOLKIT, b"a line\n")
    assert before <= event.time_ns <= line.time_ns <= after


def test_the_next_attempt_s_log_does_not_wait_for_that_of_the_one_before(pipe, tmp_path):
    events = EventLog(FramesAside(FrameWriter(pipe.path)))
    events.say("the end of one attempt")
    events.go_on_in(FramesAside(FrameWriter(str(tmp_path / "other"))))
    events.say("the next")
    events.flush(60)
    events.say("and more")
    assert FrameParser().feed((tmp_path / "other").read_bytes())[0].data == b"the next\n"
    pipe.read_to_end()
    assert pipe.frames[0].data == b"the end of one attempt\n"


def test_what_a_full_disk_does_not_take_is_lost_and_ends_nothing():
    events = EventLog(FramesAside(FrameWriter("/dev/full")))
    events.say("a line")
    began = time.monotonic()
    events.flush(60)
    assert time.monotonic() - began < 50


def test_a_log_that_is_written_at_once_waits_for_nothing(tmp_path):
    events = EventLog(FrameWriter(str(tmp_path / "frames")))
    events.say("a line")
    events.flush(60)
    assert FrameParser().feed((tmp_path / "frames").read_bytes())[0].data == b"a line\n"
