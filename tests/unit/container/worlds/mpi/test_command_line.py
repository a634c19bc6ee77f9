import os
import subprocess
import sys

import pytest
from estimator_container.worlds.mpi.command_line import RULES_VARIABLE, Fit, linear_below, mpirun, rules
from estimator_container.worlds.mpi.daemon import daemon
from estimator_container.worlds.mpi.programs import FORK_AGENT, NO_IPV6, find, relocation
from estimator_container.worlds.mpi.world import MpiWorld

from .parameters import parameters

HOSTS = ("algo-1", "algo-2")
FIT = Fit(("box", "algo-2"), "eth7", "/tmp/scratch", crowded=False, outnumbered=False, single_copy=True)


def test_the_command_gives_each_host_its_slots_and_the_world_its_size():
    command = mpirun(MpiWorld(HOSTS, 3), FIT, "/bin/mpirun", "/tmp/agent")
    assert command[0] == "/bin/mpirun"
    assert command[command.index("--host") + 1] == "box:3,algo-2:3"
    assert command[command.index("-np") + 1] == "6"
    assert ("--allow-run-as-root" in command) == (os.geteuid() == 0)


def test_the_command_is_fitted_to_the_machines():
    given = parameters(mpirun(MpiWorld(HOSTS, 1), FIT, "mpirun", "/tmp/agent"))
    assert given["plm_rsh_agent"] == "/tmp/agent"
    assert given["orte_tmpdir_base"] == "/tmp/scratch"
    assert given["oob_tcp_if_include"] == given["btl_tcp_if_include"] == "eth7"
    of_some = {"mpi_yield_when_idle", "btl_vader_single_copy_mechanism", "coll_tuned_use_dynamic_rules"}
    assert not of_some & set(given)
    tight = Fit(("box",), "lo", "/s", crowded=True, outnumbered=True, single_copy=False)
    given = parameters(mpirun(MpiWorld(("algo-1",), 1), tight, "mpirun", "/tmp/agent"))
    assert given["mpi_yield_when_idle"] == "1"
    assert given["btl_vader_single_copy_mechanism"] == "none"
    assert given["coll_tuned_use_dynamic_rules"] == "1"


def test_whoever_chooses_algorithms_is_left_alone(monkeypatch):
    tight = Fit(("box",), "lo", "/s", crowded=True, outnumbered=True, single_copy=False)
    options = ("-mca", "coll_tuned_allreduce_algorithm", "4")
    assert "coll_tuned_use_dynamic_rules" not in mpirun(MpiWorld(HOSTS, 4, options), tight, "mpirun", "/tmp/agent")
    monkeypatch.setenv("OMPI_MCA_coll_tuned_allreduce_algorithm", "4")
    assert "coll_tuned_use_dynamic_rules" not in mpirun(MpiWorld(HOSTS, 4), tight, "mpirun", "/tmp/agent")


@pytest.mark.parametrize(("hosts", "ranks", "linear"), [(1, 3, True), (1, 4, True), (2, 4, False), (2, 9, True)])
def test_open_mpi_takes_the_rules(tmp_path, hosts, ranks, linear):
    """A rank opens a connection to each that it talks to: in the linear algorithm, all to the first one alone."""
    (tmp_path / "rules").write_text(rules(hosts))
    path = find("mpirun")
    fit = Fit(("localhost",), "lo", str(tmp_path), crowded=True, outnumbered=True, single_copy=False)
    # On a busy machine MPI_Finalize waits for mpirun in vain, which would then call that an improper end.
    options = ("-mca", "btl", "self,tcp", "-mca", "orte_allowed_exit_without_sync", "1")
    command = mpirun(MpiWorld(("algo-1",), ranks, options), fit, path, "/bin/false")
    env = {**os.environ, **relocation(path), RULES_VARIABLE: str(tmp_path / "rules")}
    _, size = linear_below(hosts)
    script = f"""
import os
import time
from array import array
from mpi4py.MPI import COMM_WORLD as world
def sockets():
    folder = "/proc/self/fd/"
    return sum(os.path.exists(folder + fd) and "socket:" in os.readlink(folder + fd) for fd in os.listdir(folder))
before = sockets()
def allreduce(numbers):
    world.Allreduce(array("d", [1.0] * numbers), array("d", [0.0] * numbers))
allreduce(8)
after_small = sockets()
open({str(tmp_path)!r} + "/counted-%d" % world.rank, "w").close()
while sum(name.startswith("counted-") for name in os.listdir({str(tmp_path)!r})) < world.size:
    time.sleep(0.001)  # a rank that goes on connects to others, who may still have to count
allreduce({size // 8})
os.write(1, b"%d %d %d\\n" % (world.rank, after_small - before, sockets() - before))
"""
    ran = subprocess.run([*command, sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False)
    assert ran.returncode == 0, ran.stderr
    told = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert len(told) == ranks
    partners = {rank: small for rank, small, _ in told if rank != 0}
    assert (set(partners.values()) == {1}) == linear, told
    assert sum(large for _, _, large in told) > sum(partners.values()), told


def test_nothing_that_the_user_did_not_ask_for_names_a_program():
    command = mpirun(MpiWorld(HOSTS, 1), FIT, "mpirun", "/tmp/agent")
    assert command[-1] == parameters(command)[command[-2]]


@pytest.mark.parametrize("flag", ["-mca", "--mca", "-gmca", "--gmca"])
def test_a_parameter_of_the_users_wins_over_ours_and_is_given_once(flag):
    options = ("-x", "A=1", flag, "btl", "tcp,self", flag, "pml", "ucx")
    command = mpirun(MpiWorld(HOSTS, 1, options), FIT, "mpirun", "/tmp/agent")
    assert command[-len(options) :] == list(options)
    assert (command.count("btl"), command.count("pml")) == (1, 1)
    assert "btl_tcp_if_include" in command


def test_a_real_mpirun_takes_the_command_and_the_users_parameters(tmp_path):
    path = find("mpirun")
    fit = Fit(("localhost",), "lo", str(tmp_path), crowded=True, outnumbered=True, single_copy=False)
    options = ("--mca", "btl", "tcp,self", "-x", "GREETING=a b", "--bind-to", "none")
    command = mpirun(MpiWorld(("algo-1",), 2, options), fit, path, "/bin/false")
    env = {**os.environ, **relocation(path)}
    ran = subprocess.run([*command, "printenv", "GREETING"], capture_output=True, text=True, env=env, check=False)
    assert (ran.stdout, ran.returncode) == ("a b\na b\n", 0), ran.stderr


def test_ranks_of_one_host_talk_without_a_network_unless_they_may_start_others():
    def transports(hosts, *options, spawns=False):
        fit = FIT._replace(spawns=spawns)
        return parameters(mpirun(MpiWorld(hosts, 2, options), fit, "mpirun", "/tmp/agent")).get("btl")

    assert transports(HOSTS) == transports(HOSTS[:1], spawns=True) == "self,vader,tcp"
    assert transports(HOSTS[:1]) == transports(HOSTS[:1], "-nooversubscribe") == "self,vader"
    for options in (("-oversubscribe",), ("-mca", "rmaps_base_oversubscribe", "1")):
        assert transports(HOSTS[:1], *options) == "self,vader,tcp"


SPAWNING = FIT._replace(hostfile="/tmp/scratch/hostfile")


def test_ranks_may_start_others_unless_the_users_options_say_otherwise():
    def oversubscribes(*options):
        command = mpirun(MpiWorld(HOSTS, 2, options), SPAWNING, "mpirun", "/tmp/agent")
        return parameters(command).get("rmaps_base_oversubscribe")

    assert oversubscribes() == oversubscribes("-bind-to", "core") == "1"
    for options in (
        ("-nooversubscribe",),
        ("--map-by", "node:NOOVERSUBSCRIBE"),
        ("-mca", "rmaps_base_no_oversubscribe", "1"),
    ):
        assert oversubscribes(*options) is None


def test_hosts_are_filled_one_after_the_other():
    command = mpirun(MpiWorld(HOSTS, 2), SPAWNING, "mpirun", "/tmp/agent")
    assert command[2] == "box,box,algo-2,algo-2"
    assert (parameters(command)["rmaps"], parameters(command)["orte_default_hostfile"]) == ("seq", SPAWNING.hostfile)


@pytest.mark.parametrize("option", ["-map-by node", "-rf ranks.txt", "-mca rmaps ppr", "-npernode 2"])
def test_who_maps_ranks_gets_a_mapper_that_knows_how(option):
    command = mpirun(MpiWorld(HOSTS, 2, tuple(option.split())), SPAWNING, "mpirun", "/tmp/agent")
    assert command[2] == "box:2,algo-2:2"
    assert parameters(command).get("rmaps") in (None, "ppr") and "orte_default_hostfile" not in parameters(command)


def test_every_command_that_mpi_starts_has_the_agent_before_it():
    fit = FIT._replace(fork_agent="/venv/python -I rank.py mpi")
    assert parameters(mpirun(MpiWorld(HOSTS, 2), fit, "mpirun", "/tmp/agent"))[FORK_AGENT] == fit.fork_agent
    request = f'orted -mca {FORK_AGENT} "{fit.fork_agent}"'
    assert parameters(daemon(request, "orted", "/s", False))[FORK_AGENT] == fit.fork_agent


def test_daemons_do_without_ipv6_where_a_port_of_it_is_taken():
    fit = FIT._replace(ipv6_port=7000)
    given = parameters(mpirun(MpiWorld(HOSTS, 1), fit, "mpirun", "/tmp/agent"))
    assert given[NO_IPV6] == "7000"
    assert NO_IPV6 not in parameters(mpirun(MpiWorld(HOSTS, 1), FIT, "mpirun", "/tmp/agent"))
    static = ("-mca", "oob_tcp_static_ipv4_ports", "7001")
    assert NO_IPV6 not in parameters(mpirun(MpiWorld(HOSTS, 1, static), fit, "mpirun", "/tmp/agent"))
    request = f"orted -mca {NO_IPV6} 7000"
    assert parameters(daemon(request, "orted", "/s", False, ipv6_port=8000))[NO_IPV6] == "8000"
    assert NO_IPV6 not in parameters(daemon("orted", "orted", "/s", False, ipv6_port=8000))


def test_variables_that_the_user_sets_count_more_than_our_parameters():
    command = mpirun(MpiWorld(HOSTS, 1), FIT, "mpirun", "/tmp/agent", ["OMPI_MCA_btl", "PMIX_MCA_gds"])
    given = parameters(command)
    assert "btl" not in given and "pml" in given
