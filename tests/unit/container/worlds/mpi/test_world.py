import pytest
from estimator_container.contract.reserved import Reserved
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi.world import MpiWorld, from_reserved

HOSTS = ("algo-1", "algo-2")


def of(hosts=HOSTS, gpus=0, **hyperparameters):
    given = {f"sagemaker_mpi_{name}": value for name, value in hyperparameters.items()}
    return from_reserved(Reserved.read(given), hosts, gpus)


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


def test_ucx_leaves_the_c_library_alone_unless_the_user_chooses_what_may_need_it():
    assert MpiWorld(HOSTS, 1).defaults("eth7", False)["UCX_MEM_EVENTS"] == "no"
    assert MpiWorld(HOSTS, 1, ("--mca", "pml", "ucx")).defaults("eth7", False) == {}


def test_messages_that_may_take_a_faster_network_are_not_kept_on_the_interface_of_tcp():
    assert MpiWorld(HOSTS, 1).defaults("eth7", with_fabric=True) == {}


def test_windows_take_the_interface_that_connects_the_hosts_unless_the_user_names_others(monkeypatch):
    assert MpiWorld(HOSTS, 1).defaults("eth7", False)["MPI_UCX_NET_DEVICES"] == "eth7"
    monkeypatch.setenv("UCX_NET_DEVICES", "mlx5_0:1")
    assert "MPI_UCX_NET_DEVICES" not in MpiWorld(HOSTS, 1).defaults("eth7", False)
