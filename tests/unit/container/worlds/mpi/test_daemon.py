import shlex
import time

import pytest
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi.daemon import daemon, daemon_identity, split_request
from estimator_container.worlds.mpi.programs import BORROWED_VARIABLES
from hypothesis import given
from hypothesis import strategies as st

from .parameters import parameters

REQUEST = (
    "PATH=/opt/mpi/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/opt/mpi/lib:$LD_LIBRARY_PATH ; export LD_LIBRARY_PATH ; "
    '/opt/mpi/bin/orted -mca ess "env" -mca ess_base_jobid "3105619968" -mca ess_base_vpid 1 --tree-spawn '
    '-mca orte_node_regex "box,algo-[1:2]@0(2)" -mca orte_hnp_uri "310.0;tcp://10.0.0.5:3" '
    "-mca orte_tmpdir_base /theirs"
)


def test_of_a_request_only_the_parameters_are_taken():
    path, *words = daemon(REQUEST, "/ours/orted", "/ours/scratch", renamed=False)
    assert path == "/ours/orted"
    assert words[::3] == ["-mca"] * (len(words) // 3)
    assert parameters(words) == {
        "ess": "env",
        "ess_base_jobid": "3105619968",
        "ess_base_vpid": "1",
        "orte_node_regex": "box,algo-[1:2]@0(2)",
        "orte_hnp_uri": "310.0;tcp://10.0.0.5:3",
        "orte_tmpdir_base": "/ours/scratch",
    }


def test_a_daemon_that_goes_by_another_name_than_its_machine_is_told_so():
    assert parameters(daemon(REQUEST, "orted", "/s", renamed=True))["ess"] == "slurm"
    identity = daemon_identity("algo-2")
    assert identity["SLURMD_NODENAME"] == identity["PMIX_HOSTNAME"] == "algo-2"
    assert set(BORROWED_VARIABLES) < set(identity)


@pytest.mark.parametrize(
    "request_text",
    [
        "",
        "ls",
        "rm -rf /",
        "orted2 -mca a b",
        "sh -c 'orted -mca a b'",
        "orted ; ls",
        "orted -mca a b ; rm -rf /",
        "orted -mca a b && ls",
        "orted -mca a b | sh",
        "orted --help",
        "orted -mca a",
        "orted -mca",
        "orted -mca a b ls",
        "orted -x A=1",
        "orted $(ls)",
        "orted -mca a 'b",
        "orted orted",
    ],
)
def test_anything_but_the_request_for_a_daemon_is_refused(request_text):
    with pytest.raises(ConfigurationError, match="mpirun asked for something other than its daemon"):
        daemon(request_text, "/ours/orted", "/s", renamed=False)


def test_what_stands_before_the_daemons_name_is_left_out_because_this_hosts_own_daemon_starts():
    assert daemon("rm -rf / ; orted", "/ours/orted", "/s", False) == ["/ours/orted", "-mca", "orte_tmpdir_base", "/s"]


def test_a_request_that_would_read_a_profile_first_is_the_one_between_its_parentheses():
    wrapped = "( test ! -r ./.profile || . ./.profile; orted --daemonize -mca ess env )"
    assert daemon(wrapped, "orted", "/s", False) == daemon("orted --daemonize -mca ess env", "orted", "/s", False)


def test_no_word_of_a_request_is_ever_expanded():
    words = daemon("orted -mca a '$(ls) `id` ;'", "orted", "/s", renamed=False)
    assert "$(ls) `id` ;" in words


@given(st.text(st.sampled_from("ab \t\n\r\x0b\u2003\"'\\\\#;$é")))
def test_a_request_is_split_as_a_shell_does(request_):
    def outcome(split):
        try:
            return split(request_)
        except ValueError as error:
            return str(error)

    assert outcome(split_request) == outcome(shlex.split)


def test_a_long_request_is_split_at_once():
    """A host that is silent for 2 s is taken for frozen."""
    request = " ".join(f'-mca coll_x_{number} "{"x" * 65_000}"' for number in range(64))
    before = time.process_time()
    assert len(split_request(request)) == 3 * 64
    assert time.process_time() - before < 0.5  # shlex took 3.5 s
