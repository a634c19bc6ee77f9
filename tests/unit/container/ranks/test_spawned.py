import subprocess
import sys
from pathlib import Path

import pytest
from estimator_container.ranks import script_runner, spawned
from estimator_container.ranks import wrapper as rank

RUNNER = str(Path(script_runner.__file__).absolute())


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ("script.py", "script.py"),
        ("-u -B script.py -m x", "script.py -m x"),
        ("-W ignore -X dev script.py", "script.py"),
        ("-Wignore -uB -m worker --lr 1", "-m worker --lr 1"),
    ],
)
def test_a_python_script_runs_as_those_of_ranks(words, runs):
    words, runs = words.split(), runs.split()
    given = spawned.argv([sys.executable, *words])
    assert given == (sys.executable, *words[: len(words) - len(runs)], RUNNER, *runs)


@pytest.mark.parametrize("words", ["-c pass", "-", "", "-m", "--version", "-uc pass"])
def test_what_is_no_script_is_left_as_it_is(words):
    assert spawned.argv([sys.executable, *words.split()]) == (sys.executable, *words.split())


def test_other_programs_are_left_as_they_are_and_come_from_the_path_of_scripts(tmp_path):
    program = tmp_path / "worker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert spawned.argv(["worker", "script.py"], str(tmp_path)) == (str(program), "script.py")
    assert spawned.argv(["worker"], "/nowhere") == ("worker",)


@pytest.mark.parametrize(
    ("folder", "code", "here"),
    [
        ("/job/algo-1/code", "/job/algo-2/code", "/job/algo-2/code"),
        ("/job/algo-1/code/a/b", "/job/algo-2/code", "/job/algo-2/code/a/b"),
        ("/job/algo-1/model", "/job/algo-2/code", "/job/algo-1/model"),
        ("/opt/ml/code", "/opt/ml/code", "/opt/ml/code"),
        ("/tmp", "/opt/ml/code", "/tmp"),
        ("/code", "/opt/ml/code", "/code"),
    ],
)
def test_the_code_of_another_host_is_that_of_this_one(folder, code, here):
    assert spawned.folder_here(folder, code) == here


def test_a_rank_for_which_its_machine_has_no_such_folder_begins_in_the_code_and_not_in_the_home(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    home, code = str(tmp_path / "home"), str(tmp_path / "home" / "jobs" / "code")
    for each in (home, str(tmp_path / "link")):
        assert spawned.folder_here(home, code, each) == code
        assert spawned.folder_here("/tmp", code, each) == "/tmp"
    assert spawned.folder_here(home, code) == home


def test_the_agent_is_one_command_of_words_without_spaces(tmp_path):
    words = spawned.fork_agent(str(tmp_path)).split(" ")
    assert words == [sys.executable, "-I", "-S", str(Path(rank.__file__).absolute()), "mpi"]
    assert list(tmp_path.iterdir()) == []


def test_where_a_path_has_a_space_the_agent_is_a_script(tmp_path):
    python = tmp_path / "a folder" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    agent = spawned.fork_agent(str(tmp_path), str(python))
    ran = subprocess.run([agent, "worker", "a  b"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"-I -S {Path(rank.__file__).absolute()!s} mpi worker a  b\n"


@pytest.mark.parametrize(
    ("content", "asks"),
    [
        (b"children = MPI.COMM_SELF.Spawn('worker')", True),
        (b"from mpi4py.futures import MPIPoolExecutor", True),
        (b"\x7fELF\0MPI_Comm_spawn\0", True),
        (b"from mpi4py import MPI\nSpawner = 1", False),
    ],
)
def test_whether_code_starts_other_ranks_is_seen_in_it(tmp_path, content, asks):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "code").write_bytes(content)
    (tmp_path / "link").symlink_to("/no/such")
    assert spawned.is_asked_for(str(tmp_path)) == asks


def test_spawned_ranks_go_round_the_hosts(tmp_path):
    path = Path(spawned.write_hostfile(str(tmp_path), ("box", "algo-2")))
    lines = path.read_text().splitlines()
    assert (lines[:3], len(lines)) == (["box", "algo-2", "box"], spawned.MOST_SPAWNED)
