"""What a hello world on 2 hosts asks of the kernel: programs, processes, files, as strace counts them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CLIENT = """
import sys
from estimator_sdk import Estimator
world = {"mpi": {"enabled": True}}
# A job that ends within a second is not measured; under strace it takes longer.
quiet = {"ESTIMATOR_TELEMETRY": "off"}
job = Estimator(entry_point=sys.argv[1], instance_count=2, distribution=world, environment=quiet, backend="process")
job.fit(logs="none")
"""
HELLO = "from mpi4py import MPI\nprint('hello from rank', MPI.COMM_WORLD.rank)\n"
# What a job does with files. Not how often it looks for them, which grows with the folders that modules are searched
# in, nor how often it waits, which is the scheduler's affair.
OF_FILES = ("openat", "readlink", "mkdir", "rename", "unlink", "fsync", "fdatasync")
SLACK = 0.15
"""For files that are looked for again while something else is not there yet."""
_EXECUTED = re.compile(r'execve\("([^"]+)", (\[.*\]), 0x\S+ /\* \d+ vars \*/\) = 0$')
_CALL = re.compile(r"^(\w+)\(")
_LEFT_OUT = re.compile(r'"/proc/')
"""Grows with the processes of the machine."""
_MADE = re.compile(r"^(?:clone3?|v?fork)\(.* = \d+$")


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> list[str]:
    """The lines of strace of a client, and of all that comes of it."""
    if shutil.which("strace") is None:
        raise RuntimeError("strace is missing: run scripts/setup tests")
    folder = tmp_path_factory.mktemp("hello")
    (folder / "hello.py").write_text(HELLO)
    calls = ",".join(("execve", "clone", "clone3", "fork", "vfork", *(f"?{name}" for name in OF_FILES)))
    strace = ["strace", "-ff", "-qq", "--seccomp-bpf", "-s", "400", "-e", f"trace={calls}", "-e", "signal=none"]
    env = {**os.environ, "ESTIMATOR_HOME": str(folder / "home")}
    client = [sys.executable, "-c", CLIENT, str(folder / "hello.py")]
    # The first run of a checkout compiles modules, and the first job of a home makes its database.
    subprocess.run(client, check=True, env=env, timeout=300)
    subprocess.run([*strace, "-o", str(folder / "trace"), *client], check=True, env=env, timeout=300)
    # One file for each process: in a common one a call is two lines whenever another process comes between.
    traces = sorted(folder.glob("trace.*"))
    return [line for path in traces for line in path.read_text(errors="replace").splitlines()]


def program(path: str, argv: list[str]) -> str:
    """A name that says what a command is: an interpreter's is that of its script."""
    name = Path(path).name
    if name.startswith("python"):
        words = [word for word in argv[1:] if not word.startswith("-")]
        name = f"python {Path(words[0]).name}" if words else name
        if "-c" in argv[1:3]:
            name = "python -c"
    return name


def test_the_programs_that_are_started(trace, keep_to_budget):
    found = (_EXECUTED.search(line) for line in trace)
    started = Counter(program(each.group(1), ast.literal_eval(each.group(2))) for each in found if each)
    keep_to_budget("programs of a hello world on 2 hosts", started)


def test_the_processes_and_threads_that_are_made(trace, keep_to_budget):
    made = sum(1 for line in trace if _MADE.search(line))
    keep_to_budget("processes and threads of a hello world on 2 hosts", {"made": made}, slack=0.05)


def test_the_files_that_are_looked_for(trace, keep_to_budget):
    lines = (line for line in trace if not _LEFT_OUT.search(line))
    calls = Counter(found.group(1) for line in lines if (found := _CALL.match(line)))
    counts = {name: calls[name] for name in OF_FILES if calls[name]}
    keep_to_budget("system calls for files of a hello world on 2 hosts", counts, slack=SLACK)
