"""What a script writes: without an end, with control characters, with bytes that are not text, into the frames."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from estimator_container.contract.events import Stopping
from estimator_container.logs import console
from estimator_container.logs.frames import EVENT, NO_RANK, STDERR, STDOUT, TOOLKIT, FrameWriter
from estimator_container.logs.lines import LONGEST_REDRAWN
from estimator_container.ranks.streams import PIPE_SIZE
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk import Job
from estimator_sdk.backends.supervised.job_folder.logs import HostLog
from tests.waiting import SECONDS

FLOOD = 48 << 20  # bytes
ROOM = 80_000  # KiB that a process may take in all, Python and its modules included
FLOODS = {
    "a progress bar": b"\r%s 45%%|####      | 45/100" % (b" " * 40) * 4000,
    "dots": b"." * 250_000,
    "no text": b"\xff\xfe\x80" * 80_000,
}
READ = """
import sys
from pathlib import Path
from estimator_sdk.display.view import View
from estimator_sdk.backends.supervised.job_folder.logs import HostLog

view, log, size = View(), HostLog("algo-1", Path(sys.argv[1]).open("rb")), 0
for blocks in (log.new_blocks(), log.last_blocks()):
    for block in blocks:
        size += len(block.data)
        for line in block.lines():
            view.on_line(line)
    for line in log.news():
        view.on_open_line(line)
print(size)
"""
PEAK = """
import resource, subprocess, sys

done = subprocess.run(sys.argv[1:], stdout=sys.stdout)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""
"""Says how much memory a program has taken. The kernel counts what a process has before it becomes another program, so
it is started by a small one."""
ENDED = b'{"event": "ended", "outcome": "completed"}'


@pytest.fixture(scope="module", params=FLOODS)
def flood(request, tmp_path_factory):
    """The frames of a host whose rank never ends its line."""
    path = tmp_path_factory.mktemp("flood") / "frames"
    writer, data = FrameWriter(str(path)), FLOODS[request.param]
    times = FLOOD // len(data)
    for number in range(times):
        writer.write(number % 4, STDERR, data)
    writer.write(NO_RANK, EVENT, ENDED)
    writer.close()
    yield path, times * len(data)
    path.unlink()


def peak(*command: str) -> tuple[int, bytes]:
    """The most memory that a command has had, in KiB, and what it wrote."""
    started = [sys.executable, "-I", "-S", "-c", PEAK, sys.executable, *command]
    done = subprocess.run(started, capture_output=True, check=True)
    return int(done.stderr.split()[-1]), done.stdout


def test_the_client_reads_a_line_without_an_end_in_bounded_memory(flood):
    path, size = flood
    took, said = peak("-c", READ, str(path))
    assert int(said) == size and took < ROOM, took


def test_the_console_shows_a_line_without_an_end_in_bounded_memory(flood):
    path, size = flood
    took, shown = peak("-I", "-S", console.__file__, str(path), "algo-1")
    assert len(shown) > size and took < ROOM, took


GROWS = """
import os, sys, time

for percent in range(1, 4):
    sys.stderr.write(f"\\r\\x1b[31m{percent}0 %\\x1b[0m{'#' * 300}")
    sys.stderr.flush()
    while not os.path.exists(f"{os.environ['SM_CHANNEL_SEEN']}/{percent}"):
        time.sleep(0.01)
print("done", file=sys.stderr)
"""
FOLLOW = "import sys; from estimator_sdk.cli.main import main; sys.exit(main(sys.argv[1:]))"


class OnTerminal:
    """A command of ours on a terminal of 80 columns."""

    def __init__(self, *words: str, kind: str = "xterm") -> None:
        self._fd, inner = pty.openpty()
        environment = {**os.environ, "COLUMNS": "80", "TERM": kind}
        self._command = subprocess.Popen(
            [sys.executable, "-c", FOLLOW, *words], stdin=inner, stdout=inner, stderr=inner, env=environment
        )
        os.close(inner)
        self._text = ""

    def until(self, pattern: str) -> str:
        """What it has shown when this is found in it, from the last such call on."""
        deadline = time.monotonic() + SECONDS
        while (found := re.search(pattern, self._text)) is None:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, self._text
            self._text += os.read(self._fd, 1 << 16).decode()
        shown, self._text = self._text[: found.end()], self._text[found.end() :]
        return shown

    def end(self) -> int:
        self.until(r"Completed")
        self.rest()
        return self._command.wait(SECONDS)

    def rest(self) -> str:
        """What it has shown from the last `until` on, to its end."""
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # a terminal says so that nobody has its other end
                data = b""
            if not data:
                os.close(self._fd)
                return self._text
            self._text += data.decode()


@pytest.fixture
def growing(script, tmp_path):
    """A job whose line is drawn again once the test has seen how it was."""
    seen = tmp_path / "seen"
    seen.mkdir()
    job = script.estimator(GROWS, hosts=1, processes=1).fit({"seen": f"file://{seen}"}, wait=False)
    yield job, seen
    job.stop()
    job.wait()


@pytest.mark.parametrize("words", [("attach",), ("logs", "-f")])
def test_a_terminal_shows_the_newest_state_of_a_line_that_has_no_end_yet(growing, words):
    job, seen = growing
    command = [*words, job.name]
    shown = OnTerminal(*command)
    for percent in (1, 2, 3):
        state = shown.until(rf"{percent}0 %#+")
        assert "\x1b[31m" not in state
        assert len(state.rpartition("\r\x1b[K")[2]) < 80 and "\n" not in state.lstrip()
        (seen / str(percent)).touch()
    last = shown.until("done")
    assert "\r\x1b[K[1,0]<stderr>:" in last and "#" * 300 in last
    if words == ("attach",):
        assert shown.end() == 0
    job.wait()
    data = b"".join(line.data for line in job.logs(rank=0, stream="stderr"))
    assert data == b"".join(b"\r\x1b[31m%d0 %%\x1b[0m%s" % (each, b"#" * 300) for each in (1, 2, 3)) + b"done\n"


@pytest.mark.parametrize("words", ["attach JOB", "logs -f JOB", "run -- python train.py"])
def test_a_dumb_terminal_gets_no_control_sequences(growing, tmp_path, monkeypatch, words):
    job, seen = growing
    for percent in (1, 2, 3):
        (seen / str(percent)).touch()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import sys, time\nsys.stderr.write('\\r10 %'); time.sleep(0.5); print('done')")
    shown = OnTerminal(*words.replace("JOB", job.name).split(), kind="dumb").rest()
    assert "\x1b[K" not in shown and "done" in shown


def test_what_is_no_terminal_gets_a_growing_line_whole(growing):
    job, seen = growing
    for percent in (1, 2, 3):
        (seen / str(percent)).touch()
    command = [sys.executable, "-c", FOLLOW, "logs", "-f", job.name]
    done = subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)
    assert done.stdout.count(b"\n") == done.stdout.count(b"[1,0]") == 1 and b"\x1b[K" not in done.stdout


def test_pieces_of_a_long_progress_bar_are_what_was_written(script):
    source = f"""
import sys, time
sys.stdout.reconfigure(errors="surrogateescape")
for number in range(8000):
    sys.stderr.write(f"\\r{{number:6d}} {"#" * 60}")
sys.stderr.flush()
time.sleep(0.05)
print(file=sys.stderr)
print("é\\0\\udcff", flush=True)
"""
    job = script.run(source, processes=1)
    lines = [line.data for line in Job.attach(job.name).logs(rank=0, stream="stderr")]
    assert b"".join(lines) == b"".join(b"\r%6d %s" % (number, b"#" * 60) for number in range(8000)) + b"\n"
    assert len(lines) > 1 and all(
        line.endswith(b"\r") and len(line) < LONGEST_REDRAWN + PIPE_SIZE for line in lines[:-1]
    )
    assert [line.data for line in job.logs(stream="stdout")] == ["é".encode() + b"\0\xff\n"]


def frames_of(path: str, written: list[tuple[int, int, bytes]]) -> bytes:
    writer = FrameWriter(path)
    for rank, stream, data in written:
        writer.write(rank, stream, data)
    writer.close()
    return Path(path).read_bytes()


DATA = st.sampled_from(
    [
        b"a\n",
        b"\r 10 %",
        b"{",
        b'{"event": "x"}',
        b'{"event": "stopping"}',
        b"[" * 3000,
        b'"e"',
        b"\xf5ESF",
        b"\0",
        b"\xff\n",
    ]
)
FRAMES = st.lists(
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.sampled_from([STDOUT, STDERR, EVENT, TOOLKIT]), DATA), max_size=6
)


@given(FRAMES, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4), st.integers(0, 400))
def test_frames_of_whatever_bytes_are_read_to_their_end(written, changes, lost):
    events = []
    with tempfile.NamedTemporaryFile() as file:
        content = bytearray(frames_of(file.name, written))
        for at, byte in changes:
            content[at % max(1, len(content)) : at % max(1, len(content)) + 1] = bytes([byte])
        log = HostLog(
            "algo-1", io.BytesIO(content[: len(content) - lost % 30]), lambda host, event: events.append(event)
        )
        read = b"".join(line.data for block in log.last_blocks() for line in block.lines())
    assert len(read) <= len(content)
    assert all(event == Stopping() for event in events)
    if not changes and lost % 30 == 0:
        texts = [data for _, stream, data in written if stream != EVENT]
        assert sorted(read) == sorted(b"".join(texts))
