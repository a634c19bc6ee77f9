"""What a rank writes, with the wrapper of the rank as a real process."""

import itertools
import os
import random
import sys
import threading
from types import SimpleNamespace

import pytest
from estimator_container.logs.frames import STDERR, STDOUT, FrameParser, FrameWriter
from estimator_container.ranks import streams

from tests.waiting import SECONDS

PYTHON = (sys.executable, "-I", "-S", "-c")
TORTURE = b"\xff\xfe\0 no\r 10 %\r 20 %\n" + random.Random(3).randbytes(1 << 20) + b"\n" + b"x" * 300_000 + b"no end"


def test_every_byte_of_both_streams_is_stored(run, ranks, tmp_path):
    (tmp_path / "torture").write_bytes(TORTURE)
    assert run("/bin/sh", "-c", "cat torture; cat torture torture >&2").code == 0
    assert ranks.output() == TORTURE
    assert ranks.output(stream=STDERR) == TORTURE * 2


@pytest.mark.parametrize("end", ["os._exit(7)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_the_last_words_before_a_crash_are_stored(run, ranks, end):
    run(*PYTHON, f"import os; os.write(1, b'x' * 60000 + b'last'); os.write(2, b'words'); {end}")
    assert ranks.output()[-5:] == b"xlast"
    assert ranks.output(stream=STDERR) == b"words"


def test_what_a_rank_wrote_while_its_stream_was_not_read_is_stored_at_its_end(tmp_path, monkeypatch):
    asleep, awake = threading.Event(), threading.Event()

    def nap(seconds):
        asleep.set()
        awake.wait()

    monkeypatch.setattr(streams, "RUSH_SECONDS", float("inf"))
    monkeypatch.setattr(streams, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=nap))
    monkeypatch.setattr(streams, "signal", SimpleNamespace(SIGCHLD=0, pthread_kill=lambda thread, signum: awake.set()))
    frames = tmp_path / "frames"
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write):
        made = streams.Streams(FrameWriter(str(frames)), 0, {read: STDOUT}, -1, b"")
        made.move()
        os.write(write, b"first\n")
        assert asleep.wait(SECONDS)
        os.write(write, b"last words")
        made.stop()
    assert b"".join(frame.data for frame in FrameParser().feed(frames.read_bytes())) == b"first\nlast words"


def test_a_child_that_the_rank_leaves_writing_without_end_does_not_keep_it(run, ranks):
    assert run("/bin/sh", "-c", "echo first; yes & yes & yes & exit 3").code == 3
    assert ranks.output().startswith(b"first\n")


def test_no_more_is_taken_at_the_end_than_a_pipe_holds(tmp_path, monkeypatch):
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write):
        made = streams.Streams(FrameWriter(str(tmp_path / "frames")), 0, {read: STDOUT}, -1, b"")
        monkeypatch.setattr(os, "read", lambda fd, size: b"y" * min(size, 4096))  # as fast as it is read
        made.drain()


def test_ranks_that_write_at_the_same_time_stay_apart(ranks):
    script = "import os\nfor n in range(300): os.write(1, b'%d\\n' % n * 50)"
    for rank in range(3):
        ranks.start(*PYTHON, script, rank=rank)
    ranks.until_ended(3)
    expected = b"".join(b"%d\n" % number * 50 for number in range(300))
    assert [ranks.output(rank) for rank in range(3)] == [expected] * 3


@pytest.mark.alone
def test_lines_that_are_written_one_by_one_without_a_pause_are_taken_together(run, ranks):
    run(*PYTHON, "import os\nfor number in range(20000): os.write(1, b'%d ' % number + b'x' * 70 + b'\\n')")
    written = b"".join(b"%d " % number + b"x" * 70 + b"\n" for number in range(20000))
    assert ranks.output() == written
    frames, nap = ranks.frames(), streams.NAP_SECONDS * 1e9
    # After two that come one upon the other, whoever reads naps before the next: without that nearly all would be so.
    rushed = [one for one, _, third in zip(frames, frames[1:], frames[2:]) if third.time_ns - one.time_ns < nap]
    assert len(rushed) < len(frames) / 4, (len(rushed), len(frames))


def test_whoever_reads_naps_for_longer_and_longer_while_a_rank_writes_without_a_pause(tmp_path, monkeypatch):
    lines = [b"%d " % number + b"x" * 70 + b"\n" for number in range(2000)]
    waiting, naps, ended = iter(lines), [], threading.Event()
    read, write = os.pipe()

    def nap(seconds):
        """While it sleeps, the rank writes a line every 20 µs."""
        naps.append(seconds)
        written = b"".join(itertools.islice(waiting, int(seconds / 20e-6)))
        if written:
            os.write(write, written)
        elif not ended.is_set():
            ended.set()
            os.close(write)

    monkeypatch.setattr(streams, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=nap))
    frames = tmp_path / "frames"
    with os.fdopen(read):
        made = streams.Streams(FrameWriter(str(frames)), 0, {read: STDOUT}, -1, b"")
        os.write(write, next(waiting))
        made.move()
        assert ended.wait(SECONDS)
        made.stop()
    pieces = [frame.data for frame in FrameParser().feed(frames.read_bytes())]
    assert b"".join(pieces) == b"".join(lines)
    assert naps[:5] == [0.0003, 0.0006, 0.0012, 0.002, 0.002]
    assert len(pieces) < 25  # without a nap as many as there are lines


def test_what_horovod_says_of_a_stall_is_told_while_the_rank_runs(ranks, run_until):
    words = "Missing ranks:\\n1: [a]"  # in one piece, and the end of the line in another
    script = (
        f"import os, time; os.write(2, b'before\\n'); os.write(2, b'{words}'); os.write(2, b'\\n'); time.sleep(600)"
    )
    process = ranks.start(*PYTHON, script, rank=3)
    run_until(lambda: ranks.stalled)
    rank, said = ranks.stalled[0]
    assert rank == 3 and "Missing ranks:\n1: [a]" in said
    assert process.poll() is None
