import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import estimator_container
import pytest
from estimator_container.contract.names import Layout
from estimator_container.failures.hangs import awake_time, dumps, evidence
from estimator_container.failures.hangs.dumps import Dumps
from estimator_container.failures.hangs.evidence import Use
from estimator_container.failures.hangs.report import HangFinding, HangRule, after_stall
from estimator_container.failures.hangs.standing import AT_ITS_END, StandingRank
from estimator_container.failures.hangs.waiting import Stacks
from estimator_container.failures.hangs.watch import LOOKS, Bounds, HangWatch
from estimator_container.failures.hangs.work import Work
from estimator_container.failures.horovod_stalls import Stall
from estimator_container.failures.verdict import of_rank
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import SPAWNED, STDERR, FrameWriter
from estimator_container.runtime.children import Children

TOOLKIT = str(Path(estimator_container.__file__).absolute().parents[1])
SECONDS = 4.0  # of standing still, where a busy machine must not look like ranks that move
SHORT = 1.8  # where it may
DEADLINE = 60.0  # of standing still, in which any machine has let a rank say where it is


class Ranks:
    """Scripts that run as ranks do, and what a watch says of them."""

    def __init__(self, loop, folder, stacks):
        self.pids, self.said, self.standing, self.bounds = {}, [], [], []
        self.folder, self.stacks = folder, stacks
        self.layout = Layout(str(folder))
        self._processes = []
        for name in ("code", "checkpoints", "output/logs", "input/data"):
            (folder / name).mkdir(parents=True)
        self.frames = Path(self.layout.frames)
        self.frames.touch()
        self._loop = loop

    def module_of(self, rank):
        """As of a world whose ranks all run the script."""

    def start(self, script):
        rank = len(self.pids)
        (self.folder / "code" / f"rank{rank}.py").write_text(script)
        env = {**os.environ, "PYTHONPATH": TOOLKIT, "ESTIMATOR_STACKS": str(self.stacks)}
        argv = [sys.executable, "-m", "estimator_container.ranks.script_runner", f"rank{rank}.py"]
        self._processes.append(subprocess.Popen(argv, env=env, cwd=self.folder / "code", start_new_session=True))
        self.pids[rank] = self._processes[-1].pid

    def watch(self, seconds=SECONDS, floor=None, path=""):
        """`path` is where a rank finds programs."""
        bounds = Bounds(seconds if floor is None else floor, seconds)
        asks = Dumps(self._loop, Children(self._loop), str(self.stacks), self.layout.code, path)
        self._watch = HangWatch(self._loop, self, self.layout, asks, bounds, self)
        self._again = lambda: self.watch(2 * seconds, floor and 2 * floor, path)

    def until(self, done):
        """Ranks that a busy machine leaves no time to say where they are get twice as much, until a condition holds."""
        seconds = self._watch.bound
        self._loop.run_until(done, 5 * seconds + DEADLINE)
        if not done():
            assert seconds < DEADLINE, "nothing more happened"
            self.end_watch()
            self._again()
            self.until(done)

    def end_watch(self):
        self._watch.close()

    def tell_of_stalls(self, besides=b""):
        """As Horovod on rank 0 does, again and again."""
        said = (
            b"[2026-11-23 18:30:01.000123: W stall_inspector.cc:107] One or more tensors were submitted to be reduced, "
            b"gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 "
            b"seconds. This may indicate that they differ. \nMissing ranks:\n1: [a]\n"
        )
        FrameWriter(str(self.frames)).write(0, STDERR, said + besides)
        self._watch.stalled(Stall(60, {1: ("a",)}))
        self._loop.after(SHORT / LOOKS, lambda: self.tell_of_stalls(besides))

    def write(self, rank, words):
        FrameWriter(str(self.frames)).write(rank, STDERR, words)

    def ranks_stand(self, standing, seconds):
        """As a host does, which also writes it down."""
        self.standing.append(standing)
        self.said.append(standing and {rank: each.stack for rank, each in standing.items()})
        EventLog(FrameWriter(str(self.frames))).say("an event")

    def bound_learnt(self, seconds):
        self.bounds.append(seconds)

    def run(self, seconds):
        self._loop.run_until(lambda: False, seconds)

    def close(self):
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def ranks(loop, tmp_path):
    """They write where they stand to memory: on a busy disk that takes longer than the tests' watch waits for it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as stacks:
        made = Ranks(loop, tmp_path, Path(stacks))
        yield made
        made.close()


STANDS = "import time\ndef wait():\n    time.sleep(600)\nwait()\n"
LOOPS = "import time\nwhile True: sum(range(9999)); time.sleep(0.01)\n"  # and leaves some of the CPU to other tests
HALF_A_CPU = "import time\nwhile True: sum(range(399999)); time.sleep(0.005)\n"  # ten times what an idle rank takes


def test_ranks_that_stand_still_are_told_of_once_with_their_places(ranks):
    ranks.start(STANDS)
    ranks.start(LOOPS)
    ranks.watch()
    started = time.monotonic()
    ranks.until(lambda: ranks.said)
    assert time.monotonic() - started > SECONDS
    ranks.run(4 * SECONDS / LOOKS)
    places = {
        0: '  File "rank0.py", line 3 in wait\n  File "rank0.py", line 4 in <module>',
        1: '  File "rank1.py", line 2 in <module>',
    }
    told = [each for each in ranks.said if each is not None]
    assert told and all(each == places for each in told)
    assert len(told) <= 1 + ranks.said.count(None)  # a rank that gets no CPU cannot say where it is, and is asked anew


def test_the_time_in_which_a_job_was_suspended_is_no_silence(ranks, monkeypatch):
    """As by `scontrol suspend`, which stops the toolkit and its ranks."""
    monkeypatch.setattr(awake_time, "FROZEN_SECONDS", 1.0)
    monkeypatch.setattr(awake_time, "TICK_SECONDS", 0.1)
    ranks.start(STANDS)
    ranks.watch(SECONDS)
    ranks.run(SECONDS / 4)
    time.sleep(SECONDS * 5 / 8)
    resumed = time.monotonic()
    ranks.until(lambda: ranks.said)
    assert time.monotonic() - resumed > SECONDS / 2


def test_time_goes_on_after_a_standstill_for_who_asks_first(loop, run_until, monkeypatch):
    monkeypatch.setattr(awake_time, "FROZEN_SECONDS", 0.3)
    monkeypatch.setattr(awake_time, "TICK_SECONDS", 0.05)
    now = awake_time.AwakeTime(loop)
    began, real = now(), time.monotonic()
    time.sleep(0.5)
    assert now() - began < 0.4
    run_until(lambda: now() - began > 0.4)
    assert time.monotonic() - real - (now() - began) > 0.3
    now.close()


def test_a_file_system_that_does_not_answer_holds_up_nothing_and_accuses_nobody(ranks, run_until):
    """The file of the steps is a pipe that nobody writes to, so who opens it waits."""
    os.mkfifo(ranks.layout.training_steps)
    ranks.start(STANDS)
    ranks.watch(SHORT)
    beats, watch, loop = [], ranks._watch, ranks._loop

    def beat():
        beats.append(watch._is_looking)
        loop.after(SHORT / LOOKS, beat)

    beat()
    release = threading.Timer(60, lambda: os.open(ranks.layout.training_steps, os.O_RDWR))  # or a failure would hang
    release.start()
    run_until(lambda: len(beats) > 4 * LOOKS)
    release.cancel()
    assert beats[-2 * LOOKS :] == [True] * 2 * LOOKS
    assert ranks.said == []
    os.close(os.open(ranks.layout.training_steps, os.O_RDWR))


def test_where_py_spy_is_installed_it_says_where_they_are_in_native_code(ranks, monkeypatch):
    monkeypatch.setattr(dumps, "DUMP_SECONDS", 600.0)  # it reads what libraries call their functions from a busy disk
    ranks.start(STANDS)
    ranks.start("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n" + STANDS)
    ranks.watch(SHORT, path=str(Path(sys.executable).parent))
    ranks.until(lambda: ranks.said)
    standing = ranks.standing[0]
    for rank, pid in ranks.pids.items():
        thread, *frames = standing[rank].native.split("\n\n")[0].splitlines()
        sleeps = "select" if sys.version_info < (3, 11) else "sleep"  # as `time.sleep` is made
        assert thread.startswith(f"Thread {pid} ") and sleeps in frames[0] and "rank" in standing[rank].native
    finding = HangFinding({("algo-1", rank): each for rank, each in standing.items()}, (), 2.0, HangRule(2.0))
    assert "rank 0 in native code, as py-spy says:\nThread" in finding.text()


def test_what_is_no_answer_of_a_flight_recorder_is_none(loop, tmp_path):
    asks = Dumps(loop, Children(loop), str(tmp_path), str(tmp_path), "")
    for said in ("", "[", "7", "null", '["a"]', '[{"group": "a"}]', "[" * 100_000):
        (tmp_path / "1.flight").write_text(said)
        assert list(asks.collectives(1)) == []
    assert list(asks.collectives(2)) == []
    (tmp_path / "1.flight").write_text(json.dumps([{"group": "a", "number": 3, "name": "b", "state": "c", "more": 1}]))
    assert asks.collectives(1) == [{"group": "a", "number": "3", "name": "b", "state": "c"}]


def test_a_script_that_ends_as_it_is_asked_fails_nobody(loop, tmp_path, monkeypatch):
    path = tmp_path / "1"
    for name in ("1", "1.ask", "1.threads"):
        (tmp_path / name).touch()
    asks = Dumps(loop, Children(loop), str(tmp_path), str(tmp_path), "")
    monkeypatch.setattr(asks, "_ask_its_thread", lambda asked: path.rename(f"{path}.end"))
    asks.ask(1)
    assert asks.stacks(1).text == AT_ITS_END


def test_a_channel_that_goes_as_it_is_looked_at_is_none(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert not evidence._has_fifos(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert evidence._has_fifos(str(tmp_path))


@pytest.mark.parametrize("does", ["echo 'Error: Permission Denied' >&2; exit 1", "exec sleep 60"])
def test_where_py_spy_may_not_look_or_does_not_end_ranks_are_told_of_without_it(ranks, tmp_path, monkeypatch, does):
    monkeypatch.setattr(dumps, "DUMP_SECONDS", 0.2)
    program = tmp_path / "bin" / "py-spy"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    ranks.start(STANDS)
    ranks.watch(SHORT, path=str(program.parent))
    ranks.until(lambda: ranks.said)
    assert [each.native for each in ranks.standing[0].values()] == [""]


def test_a_watch_that_is_over_says_nothing_of_what_it_had_asked(ranks, tmp_path, monkeypatch):
    monkeypatch.setattr(dumps, "DUMP_SECONDS", 0.5)
    program = tmp_path / "bin" / "py-spy"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    ranks.start(STANDS)
    ranks.watch(SHORT, path=str(program.parent))
    ranks.until(lambda: list(ranks.stacks.glob("*.native")))
    ranks.end_watch()
    ranks.run(1.0)
    assert ranks.said == []


MOVES = {
    "it goes from line to line": "import time\nwhile True:\n" + "    time.sleep(0.07)\n" * 30,
    "a thread does": "import threading, time\ndef work():\n  while True:\n"
    + "    time.sleep(0.07)\n" * 30
    + "threading.Thread(target=work).start()\n",
    "it writes": "import time\nwhile True: open('out', 'a').write('x'); time.sleep(0.01)\n",
    "its child works": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {HALF_A_CPU!r}])\n",
    "it is no Python": "import os\nos.execvp('sleep', ['sleep', '600'])\n",
}


@pytest.mark.parametrize("script", MOVES.values(), ids=MOVES.keys())
def test_a_rank_that_moves_or_may_do_so_excuses_all(ranks, script):
    ranks.start(STANDS)
    ranks.start(script)
    ranks.watch(SHORT)
    ranks.run(2.5 * SHORT)
    assert ranks.said == []


MOVES_ONCE_TOLD = """
import signal, time
out, told = open("/dev/null", "wb", buffering=0), []
signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
while True: sum(range(9999)); time.sleep(0.01); told and out.write(b"x")
"""


def test_that_they_move_again_is_told_too(ranks, run_until):
    ranks.start(MOVES_ONCE_TOLD)
    ranks.watch()
    ranks.until(lambda: ranks.said)
    os.kill(ranks.pids[0], 10)
    run_until(lambda: len(ranks.said) == 2)
    assert ranks.said[1] is None


WORKS_AND_STANDS = """
import os, time
from functools import partial
from itertools import repeat
def does():
    next(filter(partial(os.access, mode=os.F_OK), repeat("stand"))); time.sleep(600)
does()
"""


def test_a_rank_that_has_worked_in_its_silence_and_then_stands_is_told_of_again(ranks):
    """Work that is over proves nothing for ever: the job would end at `hang_timeout` only."""
    ranks.start(WORKS_AND_STANDS)
    ranks.watch()
    ranks.until(lambda: ranks.standing)
    assert ranks.standing[0][0].works
    (ranks.folder / "code" / "stand").touch()
    ranks.until(lambda: any(each and not each[0].works for each in ranks.standing))


def test_a_rank_that_waits_several_times_to_say_where_it_stands_does_not_work():
    work = Work("", time.monotonic)
    work.begin({0: Use(0, 0, 0.0, 0.0, 0)})
    work.measure({0: Use(0, 0, 0.0, 0.0, 4)}, {0: Stacks("a", '  File "a.py", line 1 in a')})
    assert not work.may_work(0, 60)
    work.measure({0: Use(0, 0, 0.0, 0.0, 9)}, {0: Stacks("a", '  File "a.py", line 1 in a')})
    assert work.may_work(0, 60) and not work.may_work(0, 0)


def test_a_script_does_not_see_the_variable(ranks, tmp_path):
    ranks.start(
        "import os\nopen('seen', 'w').write(str(os.environ.get('ESTIMATOR_STACKS')))\nos.rename('seen', 'done')\n"
    )
    while not (tmp_path / "code" / "done").exists():
        ranks.run(0.05)
    assert (tmp_path / "code" / "done").read_text() == "None"


HOSTS = {0: "algo-1", 1: "algo-1", 2: "algo-2", 3: "algo-2"}


def verdict(hosts, stacks, ended, seconds, stall=None):
    """Of ranks of which nothing but their stacks is known."""
    standing = {(hosts[rank], rank): StandingRank(stack) for rank, stack in stacks.items()}
    done = tuple((hosts[rank], rank) for rank in ended)
    return HangFinding(standing, done, seconds, HangRule(seconds), stall).verdict()


def test_the_one_that_stands_elsewhere_is_named():
    found = verdict(HOSTS, {0: "a", 1: "a", 2: "a", 3: "b"}, (), 60)
    assert (found.kind, found.rank, found.host) == ("deadlock", 3, "algo-2")
    assert "for 60 s; rank 3 is at a different line" in found.message


@pytest.mark.parametrize("places", ["aabb", "abcd", "aaaa", "abbc"])
def test_where_no_single_one_stands_apart_nobody_is_named(places):
    found = verdict(HOSTS, dict(enumerate(places)), (), 60)
    assert (found.kind, found.rank, found.host) == ("deadlock", None, None)


@pytest.mark.parametrize(
    ("standing", "ended"), [({0: "a", 2: "a", 3: "b"}, {1}), ({0: "a", 1: AT_ITS_END, 2: "a", 3: "b"}, set())]
)
def test_the_one_that_ended_is_named_and_those_that_wait(standing, ended):
    found = verdict(HOSTS, standing, ended, 60)
    assert (found.kind, found.rank, found.host, found.victims) == ("early_exit", 1, "algo-1", (0, 2, 3))


def test_when_all_are_at_their_end_it_is_a_deadlock_there():
    assert verdict(HOSTS, dict.fromkeys(range(4), AT_ITS_END), (), 60).kind == "deadlock"


# As Horovod has it, a thread that is not the first goes on to ask the other ranks.
ASKS = """
import os, threading, time
def ask():
    with open(os.devnull, "wb", buffering=0) as other:
        while other.write(b"ready?"): time.sleep(0.01)
threading.Thread(target=ask, daemon=True).start()
time.sleep(600)
"""


def test_what_horovod_says_and_asks_during_a_stall_is_no_sign_of_life(ranks):
    ranks.start(ASKS)
    ranks.start(ASKS)
    ranks.watch()
    ranks.tell_of_stalls()
    ranks.until(lambda: ranks.said)
    assert sorted(ranks.said[0]) == [0, 1]


def test_during_a_stall_other_words_in_the_log_are_a_sign_of_life(ranks):
    ranks.start(STANDS)
    ranks.watch(SHORT)
    ranks.tell_of_stalls(besides=b"epoch 1\n")
    ranks.run(3 * SHORT)
    assert ranks.said == []


def test_during_a_stall_what_the_first_thread_of_a_rank_writes_is_a_sign_of_life(ranks):
    ranks.start(STANDS)
    ranks.start("import time\nwith open('/dev/null', 'wb', buffering=0) as f:\n while f.write(b'a'): time.sleep(.01)\n")
    ranks.watch(SHORT)
    ranks.tell_of_stalls()
    ranks.run(3 * SHORT)
    assert ranks.said == []


def test_a_verdict_names_the_rank_that_horovod_waits_for():
    stacks = {0: "  in allreduce", 1: "  in evaluate", 2: "  in allreduce", 3: "  in allreduce"}
    found = verdict(HOSTS, stacks, (), 60.0, Stall(7, {2: ("a", "b")}))
    assert (found.kind, found.rank, found.host) == ("deadlock", 2, HOSTS[2])
    assert found.message.endswith("; Horovod has waited more than 7 s for rank 2 to submit 'a', 'b'")


def test_after_horovod_has_ended_the_world_the_verdict_is_on_who_was_missing():
    failed = of_rank("algo-1", 0, 1, "Traceback (most recent call last):\nUnknownError: shut down\n", (1, 2, 3))
    found = after_stall(failed, Stall(7, {2: ("a",)}, ends_the_world=True), HOSTS)
    assert (found.kind, found.rank, found.host, found.victims) == ("deadlock", 2, HOSTS[2], (0, 1, 3))
    assert found.message == "Horovod has shut down after it had waited more than 7 s for rank 2 to submit 'a'"
    assert "UnknownError" in found.detail
    several = after_stall(failed, Stall(7, {1: ("a",), 2: ("a",)}, ends_the_world=True), HOSTS)
    assert (several.rank, several.host, several.victims) == (None, None, (0, 3))


def test_a_spawned_rank_that_stands_elsewhere_is_named():
    found = verdict({**HOSTS, SPAWNED: "algo-2"}, {0: "a", 1: "a", 2: "a", 3: "a", SPAWNED: "b"}, (), 60)
    assert (found.rank, found.host) == (SPAWNED, "algo-2")
    assert "rank 0 of world 2 is at a different line" in found.message
