"""L: logs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import subprocess
import sys
import time

import pytest

from estimator_sdk import Job
from tests.conformance.jobs import base_directory, tell

NASTY = r"""
import hashlib, os, random, sys
rank = int(os.environ["RANK"])
generator = random.Random(rank)
for fd in (1, 2):
    pieces = [
        b"plain line\n",
        b"bad utf-8 \xff\xfe\x80 \xc3( \xed\xa0\x80\n",
        b"nul \0 in a line\n",
        b"x" * (1 << 20) + b"\n",
        b"".join(b"\rprogress %3d%%" % percent for percent in range(101)),
        b"\n\n\n",
        bytes(generator.randrange(256) for _ in range(100_000)),
        b"no end of line, stream %d of rank %d" % (fd, rank),
    ]
    data = b"".join(pieces)
    with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], f"{rank}-{fd}"), "wb") as expected:
        expected.write(data)
    sent = 0
    while sent < len(data):
        sent += os.write(fd, data[sent : sent + generator.randrange(1, 100_000)])
"""


@pytest.mark.law("L1")
def test_every_byte_of_every_rank_and_stream_is_stored(script):
    job = script.run(NASTY, hosts=2, processes=2)
    for rank in range(4):
        data = base_directory(job, job.hosts[rank // 2]) / "output" / "data"
        for fd, stream in ((1, "stdout"), (2, "stderr")):
            stored = hashlib.sha256()
            for line in job.logs(rank=rank, stream=stream):
                stored.update(line.data)
            assert stored.hexdigest() == hashlib.sha256((data / f"{rank}-{fd}").read_bytes()).hexdigest()


@pytest.mark.law("L1")
@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "os._exit(3)", "os.abort()"])
def test_the_last_words_before_a_crash_are_stored(script, ending):
    source = f"""
import os
os.write(1, b"y" * 60000 + b"\\n")
os.write(1, b"last words")
{ending}
"""
    failed = script.fail(source, processes=1)
    lines = [line.data for line in Job.attach(failed.job_name).logs(rank=0, stream="stdout")]
    assert lines == [b"y" * 60000 + b"\n", b"last words"]


@pytest.mark.law("L2")
def test_the_merged_view_tears_no_line(script):
    source = """
import os, sys
rank = int(os.environ["RANK"])
for number in range(3000):
    text = f"rank {rank} line {number} {'*' * (number % 977)} end\\n"
    for piece in text[:9], text[9:]:
        (sys.stdout if number % 2 else sys.stderr).write(piece)
"""
    shown = io.StringIO()
    estimator = script.estimator(source, hosts=2, processes=2)
    with contextlib.redirect_stdout(shown):
        estimator.fit(logs="all")
    lines = [line for line in shown.getvalue().splitlines() if not line.startswith("estimator ")]
    pattern = re.compile(r"\[1,(\d)\]<(stdout|stderr)>:rank (\d) line (\d+) (\**) end")
    seen = {(rank, stream): [] for rank in range(4) for stream in ("stdout", "stderr")}
    for line in lines:
        match = pattern.fullmatch(line)
        assert match, line
        rank, stream, said, number, stars = match.groups()
        assert rank == said and len(stars) == int(number) % 977
        seen[int(rank), stream].append(int(number))
    for (_, stream), numbers in seen.items():
        assert numbers == list(range(1 if stream == "stdout" else 0, 3000, 2))


@pytest.mark.law("L3")
def test_fit_returns_after_the_last_byte_and_a_slow_reader_blocks_nobody(script):
    source = """
import os, time
for number in range(2000):
    print("line", number)
print("done at", time.time())
"""

    class Slow(io.StringIO):
        def write(self, text):
            time.sleep(0.0005)
            return super().write(text)

    shown = Slow()
    with contextlib.redirect_stdout(shown):
        script.estimator(source, hosts=1, processes=1).fit(logs="all")
    lines = [line for line in shown.getvalue().splitlines() if line.startswith("[1,0]")]
    assert lines[:-1] == [f"[1,0]<stdout>:line {number}" for number in range(2000)]
    assert lines[-1].startswith("[1,0]<stdout>:done at ")


@pytest.mark.law("L4")
def test_a_log_is_readable_while_the_job_runs_and_afterwards_from_another_process(script):
    source = """
import os, time
print("before", flush=True)
while not os.path.exists(os.environ["SM_OUTPUT_DATA_DIR"] + "/release"):
    time.sleep(0.01)
print("after", end="")
"""
    estimator = script.estimator(source, hosts=2, processes=1)
    job = estimator.fit(wait=False)
    reader = """
import sys
from estimator_sdk import Job
job = Job.attach(sys.argv[1])
for line in job.logs(rank=1, stream="stdout", follow=True):
    print(job.status, line.data.decode().strip(), flush=True)
print(job.status)
"""
    with subprocess.Popen([sys.executable, "-c", reader, job.name], stdout=subprocess.PIPE, text=True) as reading:
        assert reading.stdout is not None
        try:
            assert reading.stdout.readline() == "InProgress before\n"
            assert [line.data for line in job.logs(rank=1)] == [b"before\n"]
        finally:
            for host in ("algo-1", "algo-2"):
                tell(job, "release", host)  # or the reader would be waited for, and it for the job
        assert reading.stdout.read().splitlines()[-1] == "Completed"
    assert job.wait() == "Completed"
    assert [line.data for line in job.logs(rank=1)] == [b"before\n", b"after"]
