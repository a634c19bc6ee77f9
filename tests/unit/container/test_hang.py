import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import estimator_container
import pytest
from estimator_container.hang import AT_ITS_END, LOOKS, HangWatch, verdict
from estimator_container.mpi import World

TOOLKIT = str(Path(estimator_container.__file__).absolute().parents[1])
SECONDS = 6.0  # of standing still, where a busy machine must not look like ranks that move
SHORT = 1.8  # where it may


class Ranks:
    """Scripts that run as ranks do, and what a watch says of them."""

    def __init__(self, loop, folder):
        self.pids, self.said = {}, []
        self.folder = folder
        self._processes = []
        for name in ("stacks", "code"):
            (folder / name).mkdir()
        (folder / "frames").touch()
        self._loop = loop

    def start(self, script):
        rank = len(self.pids)
        (self.folder / "code" / f"rank{rank}.py").write_text(script)
        env = {**os.environ, "PYTHONPATH": TOOLKIT, "ESTIMATOR_STACKS": str(self.folder / "stacks")}
        argv = [sys.executable, "-m", "estimator_container.rank_script", f"rank{rank}.py"]
        self._processes.append(subprocess.Popen(argv, env=env, cwd=self.folder / "code", start_new_session=True))
        self.pids[rank] = self._processes[-1].pid

    def watch(self, seconds=SECONDS):
        paths = [str(self.folder / name) for name in ("frames", "stacks", "code")]
        self._watch = HangWatch(self._loop, self, *paths, seconds, self._say)

    def _say(self, stacks):
        """As a host does, which also writes it down."""
        self.said.append(stacks)
        with (self.folder / "frames").open("a") as file:
            file.write("an event")

    def run(self, seconds):
        self._loop.run_until(lambda: False, seconds)

    def close(self):
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def ranks(loop, tmp_path):
    made = Ranks(loop, tmp_path)
    yield made
    made.close()


STANDS = "import time\ndef wait():\n    time.sleep(600)\nwait()\n"


def test_ranks_that_stand_still_are_told_of_once_with_their_places(ranks, run_until):
    ranks.start(STANDS)
    ranks.start("while True: pass\n")
    ranks.watch()
    started = time.monotonic()
    run_until(lambda: ranks.said)
    assert time.monotonic() - started > SECONDS
    ranks.run(4 * SECONDS / LOOKS)
    assert ranks.said == [
        {
            0: '  File "rank0.py", line 3 in wait\n  File "rank0.py", line 4 in <module>',
            1: '  File "rank1.py", line 1 in <module>',
        }
    ]


MOVES = {
    "it goes from line to line": "import time\nwhile True:\n" + "    time.sleep(0.07)\n" * 30,
    "a thread does": "import threading, time\ndef work():\n  while True:\n"
    + "    time.sleep(0.07)\n" * 30
    + "threading.Thread(target=work).start()\n",
    "it writes": "import time\nwhile True: open('out', 'a').write('x'); time.sleep(0.01)\n",
    "its child works": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])\n",
    "it is no Python": "import os\nos.execvp('sleep', ['sleep', '60'])\n",
}


@pytest.mark.parametrize("script", MOVES.values(), ids=MOVES.keys())
def test_a_rank_that_moves_or_may_do_so_excuses_all(ranks, script):
    ranks.start(STANDS)
    ranks.start(script)
    ranks.watch(SHORT)
    ranks.run(2.5 * SHORT)
    assert ranks.said == []


def test_that_they_move_again_is_told_too(ranks, run_until):
    ranks.start(
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: open('out', 'w').write('on'))\nwhile 1: pass\n"
    )
    ranks.watch()
    run_until(lambda: ranks.said)
    os.kill(ranks.pids[0], 10)
    run_until(lambda: len(ranks.said) == 2)
    assert ranks.said[1] is None


def test_a_script_does_not_see_the_variable(ranks, tmp_path):
    ranks.start(
        "import os\nopen('seen', 'w').write(str(os.environ.get('ESTIMATOR_STACKS')))\nos.rename('seen', 'done')\n"
    )
    while not (tmp_path / "code" / "done").exists():
        ranks.run(0.05)
    assert (tmp_path / "code" / "done").read_text() == "None"


WORLD = World(("algo-1", "algo-2"), 2)


def test_the_one_that_stands_elsewhere_is_named():
    found = verdict(WORLD, {0: "a", 1: "a", 2: "a", 3: "b"}, {}, 60)
    assert (found.kind, found.rank, found.host) == ("deadlock", 3, "algo-2")
    assert "for 60 s; rank 3 stands elsewhere" in found.message


@pytest.mark.parametrize("places", ["aabb", "abcd", "aaaa", "abbc"])
def test_where_no_single_one_stands_apart_nobody_is_named(places):
    found = verdict(WORLD, dict(enumerate(places)), {}, 60)
    assert (found.kind, found.rank, found.host) == ("deadlock", None, None)


@pytest.mark.parametrize(
    ("standing", "ended"), [({0: "a", 2: "a", 3: "b"}, {1: "algo-1"}), ({0: "a", 1: AT_ITS_END, 2: "a", 3: "b"}, {})]
)
def test_the_one_that_ended_is_named_and_those_that_wait(standing, ended):
    found = verdict(WORLD, standing, ended, 60)
    assert (found.kind, found.rank, found.host, found.victims) == ("early_exit", 1, "algo-1", (0, 2, 3))


def test_when_all_are_at_their_end_it_is_a_deadlock_there():
    assert verdict(WORLD, dict.fromkeys(range(4), AT_ITS_END), {}, 60).kind == "deadlock"
