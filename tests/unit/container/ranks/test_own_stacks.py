"""What the threads of a script say of where they are, in a script that is asked while it runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from estimator_container.failures.hangs.dumps import Dumps
from estimator_container.ranks import script_runner
from estimator_container.ranks.own_stacks import THREADS
from estimator_container.runtime.children import Children

from tests.waiting import SECONDS, wait_for

RUNNERS = [script_runner.__file__, script_runner.LONE_SCRIPT]
STANDS = "open('ready', 'w').close()\ntime.sleep(600)\n"
OURS_ANSWERS = (  # in one line, so that those after it keep their numbers
    "while not any(os.path.realpath(f'/proc/self/fd/{fd}').endswith('.ask') for fd in os.listdir('/proc/self/fd')): "
    "time.sleep(0.001)\n"
)
OURS_READS = (  # which is where it waits to be asked
    "def reads(task): return 'pipe_' in open(f'/proc/self/task/{task}/wchan').read()\n"
    "while not any(map(reads, os.listdir('/proc/self/task'))): time.sleep(0.001)\n"
)
MOVES = """
import json, threading, time

def deep(n): return n and deep(n - 1)
def calls_back(n): return sorted([2, 1], key=lambda x: calls_back(n - 1)) if n else json.dumps({"a": [n] * 9}, indent=1)
def begins_threads():
    thread = threading.Thread(target=calls_back, args=(1,))
    thread.start()
    thread.join()
def again_and_again(call, *args):
    while True:
        call(*args)

for call in ((deep, 300), (calls_back, 3), (begins_threads,)):
    threading.Thread(target=again_and_again, args=call, daemon=True).start()
"""


class Script:
    """One that runs, and what it says of its threads."""

    def __init__(self, loop, folder, runner, text):
        for name in ("code", "stacks"):
            (folder / name).mkdir()
        (folder / "code" / "train.py").write_text(text)
        self.folder, self.stacks = folder / "code", folder / "stacks"
        self._dumps = Dumps(loop, Children(loop), str(self.stacks), str(self.folder), "")
        self.process = subprocess.Popen(
            [sys.executable, runner, "train.py"],
            cwd=self.folder,
            env={**os.environ, "ESTIMATOR_STACKS": str(self.stacks)},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: (self.folder / "ready").exists() or self.process.poll() is not None)

    def said(self, is_enough=lambda stacks: stacks.text):
        """After it was asked, and asked again where that is not enough."""
        said = []

        def says_enough():
            self._dumps.ask(self.process.pid)
            time.sleep(0.02)
            said.append(self._dumps.stacks(self.process.pid))
            assert self.process.poll() is None, self.process.stderr.read()
            return is_enough(said[-1])

        wait_for(says_enough)
        return said[-1]


@pytest.fixture(params=RUNNERS, ids=lambda path: Path(path).stem)
def started(request, loop, tmp_path):
    made = []

    def start(text):
        made.append(Script(loop, tmp_path, request.param, text))
        return made[-1]

    yield start
    for script in made:
        script.process.kill()
        script.process.communicate()


def test_who_asks_while_threads_move_does_the_script_no_harm(started):
    script = started(MOVES + STANDS)
    for _ in range(100):
        script.said()
    stacks = script.said(lambda stacks: stacks.others >= 3)
    assert stacks.first == '  File "train.py", line 17 in <module>'
    assert "again_and_again" in stacks.text


def test_what_is_collected_while_one_asks_holds_up_nobody(started):
    """In Python 3.11 that could stop all threads for ever."""
    script = started(
        "import gc, threading, time\n"
        "class Slow:\n"
        "    def __init__(self): self.itself = self\n"
        "    def __del__(self): time.sleep(0.0001)\n"
        "def litter():\n"
        "    while True: Slow(); time.sleep(0.001)\n"
        "def begin_threads():\n"
        "    while True: threading.Thread(target=int).start(); open('goes-on', 'a').close()\n"
        "for _ in range(60): threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "gc.set_threshold(50)\n"
        "threading.Thread(target=litter, daemon=True).start()\n"
        "threading.Thread(target=begin_threads, daemon=True).start()\n" + STANDS
    )
    for _ in range(50):
        script.said()
    (script.folder / "goes-on").unlink()
    wait_for((script.folder / "goes-on").exists)
    script.said(lambda stacks: stacks.others)


def test_who_cannot_tell_of_all_threads_tells_of_none(started):
    """With the first alone, a rank might seem to stand still whose others work."""
    script = started(
        "import os, resource, threading, time\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        + OURS_ANSWERS
        + "resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "os.mkdir('ready')\n"
        "while not os.path.exists('go-on'): time.sleep(0.01)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (99, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "time.sleep(600)\n"
    )
    script.said(lambda stacks: not stacks.text)
    (script.folder / "go-on").touch()
    script.said(lambda stacks: stacks.others and stacks.first == '  File "train.py", line 8 in <module>')


def test_all_threads_are_told_of_the_first_of_them_first(started):
    script = started(
        "import threading, time\n"
        "def wait(): threading.Event().wait()\n"
        "threading.Thread(target=wait, daemon=True).start()\n" + STANDS
    )
    place = '  File "train.py", line 5 in <module>'  # which it comes to once it has said that it is ready
    first, heading, *other = script.said(lambda stacks: stacks.others and stacks.first == place).text.splitlines()
    assert (first, heading) == (place, "  in another thread:")
    assert '  File "train.py", line 2 in wait' in other


def test_a_script_without_threads_has_none_of_ours(started):
    script = started("import logging, threading, time\n" + STANDS)
    script.said(lambda stacks: stacks.text == '  File "train.py", line 3 in <module>')
    assert len(list(Path(f"/proc/{script.process.pid}/task").iterdir())) == 1


def test_what_a_script_has_start_its_threads_does_not_start_ours(started):
    """As gevent, whose threads are none: one of them that waits holds up all others."""
    script = started(
        "import _thread, os, sys, time\n"
        "_thread.start_new_thread = None\n"
        "open('torch.py', 'w').close()\n"
        "import torch\n" + STANDS
    )
    answer = script.stacks / f"{script.process.pid}{THREADS}"
    script.said(lambda stacks: answer.stat().st_size)
    assert answer.read_text().startswith("Thread 0x")


def test_while_native_code_holds_the_lock_of_the_interpreter_the_first_thread_is_told_of(started):
    script = started(
        "import ctypes, os, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "read, place = ctypes.PyDLL(None).read, ctypes.create_string_buffer(1)\n"
        "pipe = os.pipe()\n"
        "open('ready', 'w').close()\n"
        "read(pipe[0], place, 1)\n"
    )
    script.said(lambda stacks: stacks.text == '  File "train.py", line 6 in <module>')


def test_what_a_script_has_in_the_place_of_our_file_is_left_alone(started):
    """As where it becomes a daemon, which closes whatever is open."""
    script = started(
        "import os, threading, time\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        + OURS_ANSWERS
        + OURS_READS
        + "os.closerange(3, 100)\n"
        "pipes = [os.pipe() for _ in range(20)]\n"
        "for _, write in pipes: os.write(write, b'kept')\n"
        "open('ready', 'w').close()\n"
        "while not os.path.exists('asked'): time.sleep(0.01)\n"
        "read = [os.read(read, 9).decode() for read, _ in pipes]\n"
        "open('read', 'w').write(' '.join(read))\n"
    )
    for _ in range(2):
        script.said(lambda stacks: stacks.others == 1)
    (script.folder / "asked").touch()
    assert (script.process.wait(SECONDS), (script.folder / "read").read_text()) == (0, " ".join(["kept"] * 20))


def test_a_signal_that_the_script_waits_for_is_not_taken_from_it(started):
    script = started(
        "import signal, threading, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "open('ready', 'w').close()\n"
        "time.sleep(0.3)\n"
        "signal.sigwait([signal.SIGUSR1])\n"
    )
    script.process.send_signal(signal.SIGUSR1)
    assert script.process.wait(SECONDS) == 0
