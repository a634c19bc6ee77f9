import os
import subprocess
import sys

import pytest
from estimator_container.worlds.mpi.command_line import Fit, mpirun
from estimator_container.worlds.mpi.mpirun_words import abort_in, is_another_in
from estimator_container.worlds.mpi.programs import find, relocation
from estimator_container.worlds.mpi.world import MpiWorld


@pytest.mark.parametrize(
    "words",
    [
        'mpirun: Error: unknown option "--host"',
        "[mpiexec@box] match_arg (utils/args/args.c:166): unrecognized argument allow-run-as-root",
        "mpirun: unrecognized option '-map-by'",
    ],
)
def test_an_mpirun_with_other_options_is_told_by_its_words(words):
    assert is_another_in(words)


@pytest.mark.parametrize("words", ["", 'unknown option "--no-such-option"', "host algo-2 is unknown", "option --hosts"])
def test_what_is_said_of_the_users_own_options_is_left_to_mpirun(words):
    assert not is_another_in(words)


@pytest.mark.parametrize("code", [7, -1, 0])
def test_the_rank_and_code_of_an_abort_are_read(code):
    words = (
        "-----\nMPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n"
        f"with errorcode {code}.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
    )
    assert abort_in(words) == (3, code)


@pytest.mark.parametrize("words", ["", "rank 3 with errorcode 7", "MPI_ABORT was invoked on rank x"])
def test_other_words_are_no_abort(words):
    assert abort_in(words) is None


@pytest.mark.parametrize(("communicator", "possible"), [("COMM_WORLD", {(1, 7), None}), ("COMM_SELF", {None})])
def test_of_a_real_abort_the_right_rank_is_read_or_none_at_all(tmp_path, communicator, possible):
    # Open MPI 4.1.8 now and then loses its own words when it aborts; a rank of another communicator is none of
    # the world.
    path = find("mpirun")
    fit = Fit(("localhost",), "lo", str(tmp_path), crowded=True, outnumbered=True, single_copy=False)
    command = mpirun(MpiWorld(("algo-1",), 2), fit, path, "/bin/false")
    abort = f"if MPI.COMM_WORLD.rank == 1: MPI.{communicator}.Abort(7)"
    script = f"from mpi4py import MPI\n{abort}\nMPI.COMM_WORLD.barrier()"
    env = {**os.environ, **relocation(path)}
    ran = subprocess.run([*command, sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False)
    assert ran.returncode != 0
    assert abort_in(ran.stderr) in possible, ran.stderr
