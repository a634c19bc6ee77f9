import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from estimator_container.runtime.children import Children, descendants, exit_code, signal_group, spawn

from tests.waiting import SECONDS

PYTHON = [sys.executable, "-I", "-S", "-c"]


@pytest.fixture
def children(loop):
    return Children(loop)


@pytest.fixture
def ended(run_until, children):
    """Starts a program and gives what `on_exit` was called with."""

    def run(argv, **options):
        codes = []
        children.start(argv, os.environ, codes.append, **options)
        run_until(lambda: codes)
        return codes[0]

    return run


# One child.


@pytest.fixture
def one_cpu():
    """Whoever is woken runs before an idle process does, so a window between two of its steps is always hit."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    yield
    os.sched_setaffinity(0, all_of_them)


def test_the_end_of_a_child_is_told_to_whoever_has_seen_its_pipe_close(children, one_cpu, monkeypatch):
    monkeypatch.setattr("estimator_container.runtime.children.ENDING_SECONDS", SECONDS)  # a busy CPU has little for it
    for _ in range(10):
        codes = []
        read, write = os.pipe()
        pid = children.start(["/bin/sleep", "600"], os.environ, codes.append, write)
        os.close(write)
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        os.kill(pid, signal.SIGKILL)
        assert os.read(read, 1) == b""
        os.close(read)
        children.reap_ending()
        assert codes == [-signal.SIGKILL]


def test_nobody_waits_for_a_child_that_goes_on(children):
    codes = []
    pid = children.start(["/bin/sleep", "600"], os.environ, codes.append)
    children.reap_ending()
    assert codes == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("code", [0, 1, 7, 127, 255])
def test_the_exit_code_of_a_child_is_told(ended, code):
    assert ended(["/bin/sh", "-c", f"exit {code}"]) == code


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV"])
def test_the_signal_that_ended_a_child_is_told_as_its_negative_number(ended, name):
    assert ended(["/bin/sh", "-c", f"kill -{name} $$"]) == -signal.Signals[f"SIG{name}"]


def test_a_wait_status_of_an_end_by_a_signal_with_a_core_is_that_signal():
    assert exit_code(139) == -signal.SIGSEGV
    assert exit_code(7 << 8) == 7


def test_each_of_many_children_is_told_its_own_end(children, run_until):
    codes = {}
    for code in range(8):
        children.start(
            ["/bin/sh", "-c", f"exit {code}"], os.environ, lambda told, code=code: codes.update({code: told})
        )
    run_until(lambda: len(codes) == 8)
    assert codes == {code: code for code in range(8)}


def test_a_child_writes_to_the_descriptors_it_is_given_and_reads_nothing(ended):
    out, err = os.memfd_create("out"), os.memfd_create("err")
    assert ended(["/bin/sh", "-c", "cat; echo out; echo err >&2"], stdout=out, stderr=err) == 0
    assert (os.pread(out, 100, 0), os.pread(err, 100, 0)) == (b"out\n", b"err\n")
    os.close(out)
    os.close(err)


def test_a_child_has_exactly_the_environment_that_it_is_given(children, run_until):
    out, codes = os.memfd_create("out"), []
    children.start(["/usr/bin/env"], {"ONE": "a b\nc"}, codes.append, stdout=out)
    run_until(lambda: codes)
    assert os.pread(out, 1000, 0) == b"ONE=a b\nc\n"
    os.close(out)


def test_a_child_inherits_nothing_that_the_toolkit_opened(ended):
    # What this process was itself started with is not the toolkit's.
    given = [fd for fd in range(500) if fd_is_inheritable(fd)]
    out, kept = os.memfd_create("out"), os.memfd_create("kept")
    script = "import os; print(*(fd for fd in range(3, 500) if os.path.exists(f'/proc/self/fd/{fd}')))"
    assert ended([*PYTHON, script], stdout=out) == 0
    assert {int(word) for word in os.pread(out, 1000, 0).split()} <= set(given)
    os.close(out)
    os.close(kept)


def fd_is_inheritable(fd):
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


def test_a_child_leads_a_group_of_its_own(ended):
    out = os.memfd_create("out")
    assert ended([*PYTHON, "import os; print(os.getpgid(0) == os.getpid())"], stdout=out) == 0
    assert os.pread(out, 100, 0) == b"True\n"
    os.close(out)


def test_a_child_starts_with_the_signals_of_a_fresh_process(ended):
    out = os.memfd_create("out")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    assert ended(["/bin/sh", "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status"], stdout=out) == 0
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
    masks = dict(line.split(":\t") for line in os.pread(out, 1000, 0).decode().splitlines())
    assert int(masks["SigBlk"], 16) == 0
    reset = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP)
    assert not any(int(masks["SigIgn"], 16) >> (signum - 1) & 1 for signum in reset)
    os.close(out)


def test_a_program_that_is_not_there_is_an_os_error():
    with pytest.raises(FileNotFoundError):
        spawn(["/no/such/program"], {})


def test_a_group_is_signalled_whole_and_one_that_is_gone_is_no_error(children, run_until):
    codes, (read, write) = [], os.pipe()
    pid = children.start(
        ["/bin/sh", "-c", "sleep 1000 & sleep 1000 & echo; wait"], os.environ, codes.append, stdout=write
    )
    os.close(write)
    os.read(read, 1)
    signal_group(pid, signal.SIGTERM)
    run_until(lambda: codes)
    assert codes == [-signal.SIGTERM]
    assert os.read(read, 1) == b""  # nobody holds the pipe any more
    os.close(read)
    signal_group(pid, signal.SIGTERM)


# All below.


def test_the_descendants_are_all_that_live_below_a_process():
    script = "sh -c 'sleep 1000 & echo $$ $!; wait' & echo $!; wait"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as shell:
        pids = {int(word) for _ in range(2) for word in shell.stdout.readline().split()}
        assert set(descendants(shell.pid)) == pids
        assert {shell.pid, *pids} <= set(descendants())
        os.killpg(shell.pid, signal.SIGKILL)


def test_a_process_without_children_has_no_descendants():
    ran = subprocess.run(
        [sys.executable, "-c", "from estimator_container.runtime.children import descendants; print(descendants())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[]\n"


INIT = """
import os, signal, sys
from estimator_container.runtime.children import become_subreaper, descendants, kill_descendants

become_subreaper()
read, write = os.pipe()

def live():
    os.write(write, b"%d\\n" % os.getpid())
    while True:
        signal.pause()

def child(of):
    if os.fork() == 0:
        of()
        os._exit(0)

def plain():
    live()

def ignores_sigterm():
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    live()

def in_a_session_of_its_own():
    os.setsid()
    live()

def forked_twice():
    child(live)

def daemon():
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child(live)

def stopped():
    os.write(write, b"%d\\n" % os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)

def a_tree_of_four():
    child(live)
    child(live)
    child(lambda: child(live))
    live()

def ends_all_but_one_thread():
    import ctypes, threading
    threading.Thread(target=live).start()
    ctypes.CDLL(None).pthread_exit(None)

def already_dead():
    os.write(write, b"%d\\n" % os.getpid())

def forks_as_long_as_it_lives():
    os.write(write, b"%d\\n" % os.getpid())
    for _ in range(300):
        if os.fork():
            os._exit(0)
    live()

kinds, expected = sys.argv[1].split(","), int(sys.argv[2])
for kind in kinds:
    child(globals()[kind])
announced = b""
while announced.count(b"\\n") < expected:
    announced += os.read(read, 1000)
kill_descendants()
left = descendants()
try:
    os.waitpid(-1, os.WNOHANG)
    left.append("a child that was not collected")
except ChildProcessError:
    pass
print(announced.decode(), left)
"""


@pytest.mark.parametrize(
    ("kinds", "announced"),
    [
        ("plain", 1),
        ("ignores_sigterm", 1),
        ("in_a_session_of_its_own", 1),
        ("forked_twice", 1),
        ("daemon", 1),
        ("stopped", 1),
        ("already_dead", 1),
        ("ends_all_but_one_thread", 1),
        ("a_tree_of_four", 4),
        ("forks_as_long_as_it_lives", 1),
        ("plain,ignores_sigterm,in_a_session_of_its_own,forked_twice,daemon,stopped,a_tree_of_four,already_dead", 11),
    ],
)
def test_no_process_below_escapes_its_end(kinds, announced):
    ran = subprocess.run(
        [sys.executable, "-c", INIT, kinds, str(announced)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    *pids, left = ran.stdout.split()
    assert (len(pids), left) == (announced, "[]")
    assert not [pid for pid in pids if Path("/proc", pid).exists()]


SPARES = INIT.replace("import become_subreaper", "import kill_descendants_but, become_subreaper").replace(
    "kill_descendants()\n",
    """
spared = os.fork()
if spared == 0:
    child(live)
    live()
while announced.count(b"\\n") < expected + 2:
    announced += os.read(read, 1000)
kill_descendants_but({spared})
spared_ones = descendants()
kill_descendants()
assert len(spared_ones) == 2 and spared in spared_ones, spared_ones
""",
    1,
)


@pytest.mark.parametrize(
    ("kinds", "announced"),
    [
        ("daemon,stopped,a_tree_of_four", 6),
        ("already_dead", 1),
        ("ends_all_but_one_thread", 1),
        *[("forks_as_long_as_it_lives", 1)] * 5,
        *[pytest.param("forks_as_long_as_it_lives", 1, marks=pytest.mark.long)] * 15,
    ],
)
def test_all_can_be_ended_but_some_that_go_on(kinds, announced):
    ran = subprocess.run(
        [sys.executable, "-c", SPARES, kinds, str(announced)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split()[-1] == "[]"


def test_there_may_be_nothing_to_end():
    ran = subprocess.run(
        [sys.executable, "-c", INIT, "already_dead", "1"], capture_output=True, timeout=SECONDS, check=False
    )
    assert ran.returncode == 0


def test_where_nobody_is_left_the_processes_of_the_machine_are_not_looked_through():
    alone = """
import os
from estimator_container.runtime import children
children.descendants = None
if os.fork() == 0:
    os._exit(0)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
children.kill_descendants()
children.kill_descendants_but(set())
"""
    subprocess.run([sys.executable, "-c", alone], timeout=SECONDS, check=True)


ADOPTS = """
import os, sys
from estimator_container.runtime.children import Children, become_subreaper
from estimator_container.runtime.loop import Loop
become_subreaper()
loop = Loop()
children, codes = Children(loop), []
children.start(["/bin/sh", "-c", "(exit 3) & exit 5"], os.environ, codes.append)
def alone():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
loop.run_until(alone)
print(codes)
"""


def test_an_orphan_is_adopted_and_collected_and_told_to_nobody():
    ran = subprocess.run([sys.executable, "-c", ADOPTS], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (ran.stdout, ran.stderr) == ("[5]\n", "")
