import json
import os

import pytest
from estimator_container.contract.events import RankEnded, StepStarted
from estimator_container.logs.events import TAIL_SIZE, EventLog, ProgramOutput
from estimator_container.logs.frames import EVENT, NO_RANK, TOOLKIT, FrameParser, FrameWriter
from estimator_container.worlds.mpi import mpirun_words


@pytest.fixture
def events(tmp_path):
    return EventLog(FrameWriter(str(tmp_path / "frames")))


@pytest.fixture
def frames(tmp_path):
    return lambda: FrameParser().feed((tmp_path / "frames").read_bytes())


def test_an_event_is_a_frame_of_json(events, frames):
    events.emit(RankEnded(None, 7))
    (frame,) = frames()
    assert (frame.rank, frame.stream) == (NO_RANK, EVENT)
    assert json.loads(frame.data) == {"event": "rank_ended", "rank": None, "code": 7}


def test_an_event_that_is_said_is_a_line_too(events, frames):
    event = StepStarted("train", 1, 2, "python train.py")
    events.tell(event, event.sentence)
    said, told = frames()
    assert (said.stream, said.data) == (TOOLKIT, b"step 'train', 1 of 2: python train.py\n")
    assert json.loads(told.data) == {
        "event": "step_started",
        "step": "train",
        "number": 1,
        "of": 2,
        "line": "python train.py",
    }


def test_a_phase_has_an_event_at_each_end_with_its_seconds_at_the_second(events, frames):
    with events.phase("code"):
        events.say("in between")
    started, said, ended = frames()
    assert json.loads(started.data) == {"event": "phase_started", "phase": "code"}
    assert (said.stream, said.data) == (TOOLKIT, b"in between\n")
    assert json.loads(ended.data)["phase"] == "code"
    assert json.loads(ended.data)["seconds"] >= 0


def test_a_phase_that_fails_has_no_end(events, frames):
    with pytest.raises(OSError), events.phase("code"):
        raise OSError
    assert [json.loads(frame.data)["event"] for frame in frames()] == ["phase_started"]


def test_what_a_program_writes_is_passed_on_as_it_comes(loop, run_until, events, frames):
    output = ProgramOutput(loop, events)
    os.write(output.write_fd, b"\xffhalf a line")
    run_until(frames)
    assert [(frame.stream, frame.data) for frame in frames()] == [(TOOLKIT, b"\xffhalf a line")]
    output.started()
    output.finish()


def test_finish_takes_what_the_loop_has_not_read_yet(loop, events, frames):
    output = ProgramOutput(loop, events)
    os.write(output.write_fd, b"last words")
    output.started()
    assert output.finish() == "last words"
    assert [frame.data for frame in frames()] == [b"last words"]


def test_finish_gives_the_words_of_a_program_whose_end_the_loop_has_seen(loop, run_until, events):
    output = ProgramOutput(loop, events)
    os.write(output.write_fd, b"last words")
    output.started()
    run_until(lambda: output._read_fd < 0)
    assert output.finish() == "last words"
    assert output.finish() == "last words"


def test_finish_does_not_wait_for_a_child_of_the_program_that_still_holds_the_pipe(loop, events):
    output = ProgramOutput(loop, events)
    held = os.dup(output.write_fd)
    os.write(output.write_fd, b"words")
    output.started()
    assert output.finish() == "words"
    os.close(held)


def test_only_the_end_of_long_words_is_kept_for_a_verdict_and_all_of_it_in_the_log(loop, run_until, events, frames):
    output = ProgramOutput(loop, events)
    written = b"".join(b"%07d\n" % number for number in range(4000))
    os.write(output.write_fd, written)
    output.started()
    assert output.finish().encode() == written[-TAIL_SIZE:]
    assert b"".join(frame.data for frame in frames()) == written


def test_a_disk_that_takes_no_event_ends_nothing():
    events = EventLog(FrameWriter("/dev/full"))
    events.emit(RankEnded(0, 0))
    events.say("nobody will read this")


def test_what_mpirun_says_of_a_shell_that_was_quicker_than_itself_is_not_passed_on(loop, events, frames):
    output = ProgramOutput(loop, events, mpirun_words.IDLE)
    idle = b"[algo-1:00006] plm:rsh: Warning: setpgid(10,10) failed in parent with errno=Permission denied(13)\n"
    os.write(output.write_fd, idle + b"a word\n")
    output.started()
    assert output.finish() == "a word\n"
    assert [frame.data for frame in frames()] == [b"a word\n"]
