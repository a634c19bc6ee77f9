"""The wrapper of a rank as a real process, and the toolkit's side of it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.agents.checkpoints.ranks_alive import no_rank_died
from estimator_container.logs.frames import STDERR, number_of
from estimator_container.ranks.server import RankCommand
from estimator_container.ranks.wrapper import FIRST_FD, Rank, last_fd
from estimator_container.runtime.children import descendants
from estimator_container.runtime.wire import pack

from tests.waiting import wait_until_gone, wait_until_stopped

PYTHON = (sys.executable, "-I", "-S", "-c")


# How it ends.


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_told_with_the_rank(run, code):
    ended = run("/bin/sh", "-c", f"exit {code}", rank=5)
    assert (ended.rank, ended.code, ended.told) == (5, code, False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_is_told_as_its_negative_number(run, number):
    assert run(*PYTHON, f"import os; os.kill(os.getpid(), {int(number)})").code == -number


def test_the_end_of_stderr_is_told_and_a_nul_in_it_does_no_harm(run):
    tail = run(
        "/bin/sh", "-c", r"printf 'x%.0s' $(seq 40000) >&2; printf '\000 \377 last words' >&2; exit 3"
    ).stderr_tail
    assert tail.endswith("xx\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER} last words")
    assert len(tail.encode()) <= (1 << 14) + 10


def test_a_program_that_is_not_there_ends_as_in_a_shell_and_says_so(run, ranks):
    ended = run("/no/such/program")
    assert (ended.code, ended.rank) == (127, 0)
    assert "cannot run '/no/such/program': No such file" in ended.stderr_tail
    assert b"cannot run" in ranks.output(stream=STDERR)


def test_a_rank_without_a_world_is_known_as_such(ranks, monkeypatch):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    process = ranks.start("/bin/true", rank=-1)
    ranks.until_ended()
    assert ranks.ended[0].rank == -1
    assert process.wait() == 0


@pytest.mark.parametrize("deferential", [False, True])
def test_ranks_that_are_many_to_a_cpu_interrupt_nobody_who_runs(run, ranks, deferential):
    ranks.server.deferential = deferential
    run(*PYTHON, "import os; print(os.sched_getscheduler(0), end='')")
    assert ranks.output() == b"%d" % (os.SCHED_BATCH if deferential else os.SCHED_OTHER)


def test_a_rank_keeps_to_its_cpus_and_its_wrapper_does_not(run, ranks):
    allowed = os.sched_getaffinity(0)
    kept = sorted(allowed)[:-1] or sorted(allowed)
    ranks.server.cpus_of = lambda rank, local_rank: kept if (rank, local_rank) == (3, 0) else ()
    source = "import os; print(sorted(os.sched_getaffinity(0)), len(os.sched_getaffinity(os.getppid())), end='')"
    run(*PYTHON, source, rank=3)
    assert ranks.output(rank=3) == f"{kept} {len(allowed)}".encode()


def test_cpus_that_are_not_allowed_any_more_bind_nothing(run, ranks):
    ranks.server.cpus_of = lambda rank, local_rank: [*os.sched_getaffinity(0), 100_000]
    run(*PYTHON, "import os; print(len(os.sched_getaffinity(0)), end='')")
    assert ranks.output() == b"%d" % len(os.sched_getaffinity(0))


def test_a_wrapper_of_a_rank_that_succeeded_ends_with_it(ranks):
    process = ranks.start("/bin/true")
    ranks.until_ended()
    assert process.wait() == 0


def test_a_wrapper_of_a_rank_that_failed_stays_until_the_toolkit_ends_it(ranks):
    process = ranks.start("/bin/false")
    ranks.until_ended()
    assert process.poll() is None
    ranks.close()
    assert process.poll() is not None


def test_a_held_wrapper_stays_although_its_rank_succeeded(ranks, tmp_path):
    os.mkfifo(tmp_path / "gate")
    process = ranks.start("/bin/sh", "-c", "read line < gate")
    ranks.until_started()
    ranks.server.hold()
    (tmp_path / "gate").write_text("go\n")
    ranks.until_ended()
    assert process.poll() is None


def test_a_wrapper_that_is_held_while_its_rank_ends_stays(ranks, tmp_path):
    os.mkfifo(tmp_path / "gate")
    process = ranks.start("/bin/sh", "-c", "read line < gate")
    ranks.until_started()
    process.send_signal(signal.SIGSTOP)  # mostly before it looks for either
    wait_until_stopped(process.pid)
    (rank,) = descendants(process.pid)
    ranks.server.hold()
    (tmp_path / "gate").write_text("go\n")
    wait_until_gone(rank)
    process.send_signal(signal.SIGCONT)
    ranks.until_ended()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)


def test_what_a_rank_leaves_running_in_its_group_is_ended_with_it(ranks):
    ranks.start("/bin/sh", "-c", "sleep 1000 & echo $!; exit 0")
    ranks.until_ended()
    wait_until_gone(int(ranks.output()))


# What others do to it.

WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
open("up", "w").close()
while True: time.sleep(0.05)  # and not for ever: a signal may come just before it
"""


@pytest.fixture
def start_waiting(ranks, tmp_path):
    """Starts a rank that runs until it is told to end; gives its wrapper and its pid once it is ready to be told."""
    os.mkfifo(tmp_path / "up")

    def start():
        process = ranks.start(*PYTHON, WAITS)
        ranks.until_started()
        assert (tmp_path / "up").read_text() == ""
        return process, ranks.server.pids[0]

    return start


def test_a_rank_that_mpi_tells_to_end_is_told_apart(ranks, start_waiting):
    process, _ = start_waiting()
    process.send_signal(signal.SIGTERM)
    ranks.until_ended()
    assert (ranks.ended[0].code, ranks.ended[0].told) == (9, True)


def test_a_signal_of_the_toolkit_reaches_the_rank_and_is_not_mpis(ranks, start_waiting):
    start_waiting()
    ranks.server.signal_all(signal.SIGTERM)
    ranks.until_ended()
    assert (ranks.ended[0].code, ranks.ended[0].told) == (9, False)
    assert ranks.server.pids == {}


COUNTS = """
import os, signal, sys, time
told = []
def note(*_):
    told.append(True)
    open("told", "w").close()
signal.signal(signal.SIGTERM, note)
signal.signal(signal.SIGWINCH, lambda *_: sys.exit(len(told)))  # which Python handles after the other
open("up", "w").close()
while True: time.sleep(0.05)  # and not for ever: a signal may come just before it
"""


@pytest.fixture
def start_counting(ranks, tmp_path):
    """Starts a rank that counts what tells it to end; gives its wrapper, what awaits the first word, and its count."""
    os.mkfifo(tmp_path / "up")
    os.mkfifo(tmp_path / "told")

    def start(**env):
        process = ranks.start(*PYTHON, COUNTS, **env)
        ranks.until_started(len(ranks.started) + 1)
        assert (tmp_path / "up").read_text() == ""
        return process, (tmp_path / "told").read_text, count

    def count():
        os.kill(ranks.server.pids[0], signal.SIGWINCH)
        ranks.until_ended(len(ranks.ended) + 1)
        return ranks.ended[-1].code

    return start


def test_a_script_is_told_to_end_once(ranks, start_counting):
    _, until_told, count = start_counting()
    ranks.server.tell_scripts_to_end()
    until_told()
    ranks.server.tell_scripts_to_end()
    assert count() == 1


def test_a_rank_that_is_started_again_can_be_told_again(ranks, start_counting):
    for _ in range(2):
        _, until_told, count = start_counting()
        ranks.server.tell_scripts_to_end()
        until_told()
        assert count() == 1


ELSEWHERE = {"ESTIMATOR_PLATFORM_ADDRESS": "10.0.0.1:4711"}


def test_a_rank_that_a_scheduler_has_signalled_gets_no_second_signal(ranks, run_until, start_counting):
    process, until_told, count = start_counting(**ELSEWHERE)
    ranks.server.hold()  # as the toolkit does that has the same signal
    os.kill(ranks.server.pids[0], signal.SIGTERM)
    until_told()
    process.send_signal(signal.SIGTERM)
    run_until(lambda: ranks.server._told)
    ranks.server.tell_scripts_to_end()
    assert count() == 1
    assert ranks.ended[0].told


def test_a_rank_that_was_not_there_yet_when_a_scheduler_signalled_is_told_by_its_wrapper(ranks):
    """What it signals it has read from /proc before; it would have ended a rank that has no handler."""
    process = ranks.start("/bin/sleep", "1000", **ELSEWHERE)
    ranks.until_started()
    process.send_signal(signal.SIGSTOP)  # so that it finds the host's word and the signal at once
    ranks.server.hold()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    ranks.until_ended()
    assert (ranks.ended[0].code, ranks.ended[0].told) == (-signal.SIGTERM, True)


def test_a_rank_whose_wrapper_alone_is_signalled_is_told_by_it_and_not_by_the_toolkit(ranks, run_until, start_counting):
    process, until_told, count = start_counting(**ELSEWHERE)
    process.send_signal(signal.SIGTERM)  # as mpirun does, of which the toolkit knows nothing
    run_until(lambda: ranks.server._told)
    until_told()
    ranks.server.tell_scripts_to_end()
    assert count() == 1
    assert ranks.ended[0].told


def test_a_rank_of_which_its_wrapper_knows_no_scheduler_has_the_signal_at_once(ranks, run_until, start_counting):
    process, until_told, count = start_counting()
    ranks.server.hold()
    process.send_signal(signal.SIGTERM)
    until_told()
    run_until(lambda: ranks.server._told)
    ranks.server.tell_scripts_to_end()
    assert count() == 1


def test_a_killed_wrapper_takes_its_rank_with_it_and_is_told(ranks, start_waiting):
    process, pid = start_waiting()
    process.kill()
    ranks.until_ended()
    wait_until_gone(pid)
    assert (ranks.ended[0].rank, ranks.ended[0].code, ranks.ended[0].told) == (0, -signal.SIGKILL, False)
    assert "wrapper" in ranks.ended[0].stderr_tail


def test_a_wrapper_that_mpi_kills_because_its_rank_does_not_end_is_not_the_first_to_fail(
    ranks, run_until, start_counting
):
    process, until_told, _ = start_counting()
    process.send_signal(signal.SIGTERM)
    until_told()
    run_until(lambda: ranks.server._told)
    process.kill()
    ranks.until_ended()
    assert (ranks.ended[0].code, ranks.ended[0].told) == (-signal.SIGKILL, True)


def test_a_rank_does_not_outlive_its_toolkit(ranks, start_waiting):
    process, pid = start_waiting()
    ranks.server.close()
    assert process.wait() == 1
    wait_until_gone(pid)


def test_wrappers_may_die_while_all_are_told_to_hold(ranks):
    processes = [ranks.start("/bin/sh", "-c", "exec sleep 1000", rank=rank) for rank in range(3)]
    ranks.until_started(3)
    for process in processes:
        process.kill()
        process.wait()
    ranks.server.hold()
    ranks.server.hold()
    ranks.until_ended(3)
    assert {ended.rank for ended in ranks.ended} == {0, 1, 2}


def test_a_wrapper_that_comes_before_there_is_anything_to_run_ends(loop, run_until, ranks):
    process = ranks.start("/bin/true")
    ranks.server.command = None
    ended = []
    fd = os.pidfd_open(process.pid)
    loop.on_readable(fd, lambda: (ended.append(True), loop.forget(fd)))
    run_until(lambda: ended)
    os.close(fd)
    assert process.wait() == 1
    assert ranks.started == ranks.ended == []


@pytest.mark.parametrize("has_scheduler", [False, True])
def test_a_signal_that_comes_while_its_wrapper_starts_ends_a_rank_and_not_the_wrapper(ranks, has_scheduler):
    """A scheduler that signals all processes of a host has not signalled a rank that was not there yet."""
    if has_scheduler:
        ranks.server.hold()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))  # as the toolkit starts wrappers
    try:
        process = ranks.start(*PYTHON, "import signal; signal.pause()", **(ELSEWHERE if has_scheduler else {}))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    process.send_signal(signal.SIGTERM)
    ranks.until_ended()
    assert [(ended.code, ended.told) for ended in ranks.ended] == [(-signal.SIGTERM, True)]


def test_a_wrapper_that_ends_before_it_has_asked_for_anything_is_the_end_of_its_rank(ranks):
    ended = {rank: ranks.server.expect_wrapper(rank) for rank in range(3)}
    ranks.start("/bin/true", rank=0)
    ranks.until_ended()
    for told in ended.values():
        told(-signal.SIGTERM)
    ended[1](-signal.SIGTERM)
    assert [(each.rank, each.code) for each in ranks.ended] == [(0, 0), (1, -signal.SIGTERM), (2, -signal.SIGTERM)]
    assert "before it could start it" in ranks.ended[1].stderr_tail


def test_a_wrapper_of_the_last_step_may_end_while_that_of_the_next_one_starts(ranks):
    last = ranks.server.expect_wrapper(0)
    ranks.start("/bin/true", rank=0)
    ranks.until_ended()
    ranks.server.expect_wrapper(0)
    last(0)
    assert len(ranks.ended) == 1


def test_nobody_waits_for_a_wrapper_after_the_end(ranks):
    ended = ranks.server.expect_wrapper(0)
    ranks.server.close()
    ended(1)
    assert ranks.ended == []


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_whose_output_cannot_be_stored_fails_and_says_where(ranks, tmp_path, rank):
    ranks.frames_file = tmp_path / "no such folder" / "frames"
    ranks.start("/bin/true", rank=rank)
    ranks.until_ended()
    assert (ranks.ended[0].rank, ranks.ended[0].code) == (rank, 1)
    assert str(ranks.frames_file) in ranks.ended[0].stderr_tail


@pytest.mark.parametrize(
    ("rank", "mpirun", "told"), [("-1", False, [(-1, 1)]), ("2", False, [(2, 1)]), ("2", True, [])]
)
def test_a_wrapper_that_dies_before_it_starts_anything_is_told_where_mpirun_does_not_see_it(
    ranks, loop, run_until, rank, mpirun, told
):
    ranks.server.mpirun_watches = mpirun
    ranks.server.command = RankCommand(("/bin/true",), "/", str(ranks.frames_file), (), {})
    rounds = []
    with socket.socket(socket.AF_UNIX) as wrapper:
        wrapper.connect(ranks.server.path)
        wrapper.sendall(pack(["rank", rank, "0"]))
        loop.on_readable(wrapper.fileno(), lambda: (rounds.append(True), loop.forget(wrapper.fileno())))
        run_until(lambda: rounds)
    rounds.clear()
    loop.after(0.0, lambda: loop.after(0.0, lambda: rounds.append(True)))
    run_until(lambda: rounds)
    assert [(ended.rank, ended.code) for ended in ranks.ended] == told
    assert ranks.started == []


# What it is given.


def test_the_environment_is_that_of_mpi_less_what_is_dropped_with_the_settings(run, ranks):
    world = {
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "SECRET": "x",
        "KEPT": "y",
        "CHANGED": "old",
    }
    settings = {"CHANGED": "new", "EQUALS": "a=b=c", "LINES": "a\nb", "EMPTY": "", "ODD": "\udcff"}
    script = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(k + b'=' + v for k, v in os.environb.items()))"
    run(*PYTHON, script, rank=3, dropped=("SECRET", "ESTIMATOR_HOST_SOCKET"), settings=settings, **world)
    seen = dict(pair.split(b"=", 1) for pair in ranks.output(rank=3).split(b"\0"))
    assert not {b"SECRET", b"ESTIMATOR_HOST_SOCKET"} & set(seen)
    for name, value in {"KEPT": "y", **settings}.items():
        assert seen[name.encode()] == os.fsencode(value)
    assert [seen[name] for name in (b"RANK", b"WORLD_SIZE", b"LOCAL_RANK", b"LOCAL_WORLD_SIZE")] == [
        b"3",
        b"4",
        b"1",
        b"2",
    ]


def test_arguments_arrive_byte_for_byte_and_the_folder_is_the_codes(run, ranks, tmp_path):
    arguments = ["", "a b", "'", '"', "$(ls)", "a\nb", "é", "\udcff", "-x"]
    script = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, [os.getcwd(), *sys.argv[1:]])))"
    run(*PYTHON, script, *arguments)
    assert ranks.output() == b"|".join(map(os.fsencode, [str(tmp_path), *arguments]))


def test_a_rank_reads_nothing_and_leads_a_group_of_its_own(run, ranks):
    run(*PYTHON, "import os, sys; print(sys.stdin.read() == '', os.getpgid(0) == os.getpid())")
    assert ranks.output() == b"True True\n"


def test_a_rank_inherits_no_descriptor_of_the_wrapper(run, ranks):
    given = [fd for fd in range(3, 500) if Path(f"/proc/self/fd/{fd}").exists() and os.get_inheritable(fd)]
    run(*PYTHON, "import os; print(*(fd for fd in range(3, 500) if os.path.exists(f'/proc/self/fd/{fd}')))")
    assert {int(word) for word in ranks.output().split()} <= set(given)


def test_a_spawned_rank_runs_the_command_of_the_one_that_spawned_it_with_the_settings_of_all(run, ranks, tmp_path):
    show = "import os, sys; print(os.environ['GIVEN'], os.environ['RANK'], sys.argv[1:], file=sys.stderr); sys.exit(4)"
    ended = run("no-such", rank=1, settings={"GIVEN": "x"}, spawned=(*PYTHON, show, "a  b"), PMIX_NAMESPACE="458754")
    child = number_of(2, 1)
    assert (ended.rank, ended.code) == (child, 4) and ranks.started == [child]
    assert ranks.output(rank=child, stream=STDERR) == b"x 1 ['a  b']\n"


def test_a_spawned_rank_counts_before_it_runs(run, ranks):
    """Or the ranks that have started it could end, and with them the job, before it is known."""
    known = []
    ranks.server.on_spawned = lambda rank: known.append((rank, list(ranks.started)))
    ended = run("no-such", rank=1, spawned=("/bin/true",), PMIX_NAMESPACE="458754")
    assert known == [(ended.rank, [])]


def test_a_spawned_rank_sends_no_weights(run, ranks):
    show = "import os; print(os.environ['GIVEN'], os.environ.get('ESTIMATOR_WEIGHTS'))"
    settings = {"GIVEN": "x", "ESTIMATOR_WEIGHTS": "/a/socket"}
    run("no-such", rank=1, settings=settings, spawned=(*PYTHON, show), PMIX_NAMESPACE="458754")
    assert ranks.output(rank=number_of(2, 1)) == b"x None\n"


def test_a_rank_of_the_jobs_own_world_runs_what_the_toolkit_says(run, ranks):
    run("/bin/echo", "own", spawned=("/bin/echo", "other"), PMIX_NAMESPACE="458753")
    assert ranks.output() == b"own\n"


# What tells whether it lives.

DESCRIPTORS = """
import os
for name in sorted(os.listdir('/proc/self/fd'), key=int):
    try: print(name, os.path.basename(os.readlink('/proc/self/fd/' + name)))
    except OSError: pass
"""


@pytest.fixture
def alive(tmp_path):
    made = tmp_path / "alive"
    made.mkdir()
    return made


def descriptors(ranks, rank=0):
    return dict(line.split(" ", 1) for line in ranks.output(rank).decode().splitlines())


def test_a_rank_has_a_file_open_under_its_lowest_and_its_highest_descriptor(run, ranks, alive):
    run(*PYTHON, DESCRIPTORS, rank=7, alive=alive)
    found = descriptors(ranks, 7)
    assert found[str(FIRST_FD)] == "7-first"
    assert found[str(last_fd())] == "7-last"
    assert [fd for fd in found if found[fd].startswith("7-")] == [str(FIRST_FD), str(last_fd())]


def test_without_being_asked_it_has_none(run, ranks, tmp_path):
    run(*PYTHON, DESCRIPTORS)
    assert not [name for name in descriptors(ranks).values() if name.endswith(("first", "last"))]
    assert {path.name for path in tmp_path.iterdir()} <= {"frames", "host"}


def test_the_files_are_no_matter_of_the_environment(ranks, alive):
    script = "import os; print(sorted(set(os.environ.items()) - {('OMPI_COMM_WORLD_RANK', '0')}))"
    said = []
    for number, options in enumerate(({}, {"alive": alive})):
        ranks.start(*PYTHON, script, **options)
        ranks.until_ended(number + 1)
        said.append(ranks.output())
    assert said[1] == said[0] * 2


ENDS = {
    "success": ("exit 0", True),
    "told to end, and it did": ("exit 143", True),
    "a failure": ("exit 1", False),
    "a signal": ("kill -9 $$", False),
}


@pytest.mark.parametrize(("end", "in_order"), ENDS.values(), ids=ENDS)
def test_a_rank_no_rank_died_while_it_lives_and_after_an_end_in_order(ranks, alive, tmp_path, end, in_order):
    os.mkfifo(tmp_path / "gate")
    ranks.start("/bin/sh", "-c", f"read line < gate; {end}", alive=alive)
    ranks.until_started()
    assert no_rank_died(str(alive))
    (tmp_path / "gate").write_text("go\n")
    ranks.until_ended()
    assert sorted(path.name for path in alive.iterdir()) == ["0-first", "0-last"]
    assert no_rank_died(str(alive)) == in_order


def test_the_words_of_an_earlier_step_do_not_vouch_for_the_rank_of_a_later_one(ranks, alive):
    ranks.start("/bin/sh", "-c", "exit 0", alive=alive)
    ranks.until_ended()
    assert no_rank_died(str(alive))
    ranks.start("/bin/sh", "-c", "kill -9 $$", alive=alive)
    ranks.until_ended(2)
    assert not no_rank_died(str(alive))


def test_a_killed_wrapper_vouches_for_nothing(ranks, alive):
    process = ranks.start("/bin/sh", "-c", "exec sleep 1000", alive=alive)
    ranks.until_started()
    pid = ranks.server.pids[0]
    process.kill()
    ranks.until_ended()
    wait_until_gone(pid)
    assert not no_rank_died(str(alive))


def test_nobody_who_has_the_number_of_a_rank_that_has_ended_is_killed_with_its_host(monkeypatch):
    """A wrapper whose rank has failed waits for the end of its host, which may be minutes later."""
    killed, ended = [], []
    monkeypatch.setattr(os, "killpg", lambda pgid, signum: killed.append(pgid))
    monkeypatch.setattr(os, "_exit", ended.append)
    ours, toolkit = socket.socketpair()
    toolkit.close()
    with ours:
        rank = Rank(ours, 0, [])
        rank._pid, rank._streams = 4321, SimpleNamespace(stop=lambda: None, drain=lambda: None)
        rank._end_group()
        list(rank._receive())
    assert (killed, ended) == ([4321], [1])


# When somebody stops it.


def test_a_rank_that_is_stopped_is_told_of_and_so_is_its_going_on(ranks, run_until):
    ranks.start("/bin/sh", "-c", "kill -STOP $$; sleep 600")
    run_until(lambda: ranks.frozen)
    os.kill(ranks.server.pids[0], signal.SIGCONT)
    run_until(lambda: len(ranks.frozen) == 2)  # one that ended at once would hide that it went on
    assert ranks.frozen == [(0, signal.SIGSTOP), (0, 0)]
    assert ranks.ended == []


def test_a_rank_that_is_killed_while_it_is_stopped_has_ended(ranks, run_until):
    ranks.start("/bin/sh", "-c", "kill -STOP $$")
    run_until(lambda: ranks.frozen)
    os.kill(ranks.server.pids[0], signal.SIGKILL)
    ranks.until_ended()
    assert ranks.ended[0].code == -signal.SIGKILL


SENDS_WEIGHTS = """
import socket
sock = socket.socket(socket.AF_UNIX)
sock.connect({path!r})
sock.sendall({message!r})
"""


def test_what_a_script_sends_of_its_weights_is_handed_on_beside_the_news_of_its_wrapper(ranks):
    script = SENDS_WEIGHTS.format(path=ranks.server.path, message=pack(["weights", "0", "net", "2"]))
    ranks.start(*PYTHON, script)
    ranks.until_ended()
    ranks._run_until(lambda: ranks.weights)
    assert ranks.weights == [["0", "net", "2"]]
    assert ranks.ended[0].code == 0
