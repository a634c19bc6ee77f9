import json
from pathlib import Path

import pytest
from estimator_container.contract.cluster import in_order
from estimator_container.contract.names import HOST_ADDRESSES, WORLD_PORT, Layout
from estimator_container.contract.settings import Settings, read_environment, read_secret
from estimator_container.runtime.errors import ConfigurationError
from hypothesis import given, strategies

RESOURCES = {"current_host": "algo-2", "hosts": ["algo-2", "algo-10", "algo-1"]}
FILES = {"hyperparameters.json": {}, "resourceconfig.json": RESOURCES, "inputdataconfig.json": {}}
HETERO = [
    {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-2", "algo-1"]},
    {"instance_group_name": "gpu", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-10"]},
]


@pytest.fixture
def write(tmp_path):
    folder = tmp_path / "input" / "config"
    folder.mkdir(parents=True)

    def write(**changes):
        for name, content in {**FILES, **{f"{key}.json": value for key, value in changes.items()}}.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / name).write_text(text)
        return Layout(str(tmp_path))

    return write


def resources(**changes):
    return {**RESOURCES, **changes}


def read(layout, **variables):
    return Settings.read(layout, variables)


def test_the_hosts_have_the_order_of_a_plan_and_the_first_one_leads(write):
    cluster = read(write()).cluster
    assert cluster.hosts == ("algo-1", "algo-2", "algo-10")
    assert cluster.leader == "algo-1"
    assert cluster.current_host == "algo-2"


@given(names=strategies.permutations([f"algo-{number}" for number in range(1, 121)]))
def test_whatever_order_a_platform_lists_hosts_in_they_are_in_that_of_their_numbers(names):
    assert in_order(names) == tuple(f"algo-{number}" for number in range(1, 121))


@given(
    names=strategies.lists(strategies.text("ab0129-²", min_size=1), unique=True).flatmap(
        lambda names: strategies.tuples(strategies.just(names), strategies.permutations(names))
    )
)
def test_hosts_of_any_names_have_one_order_on_all_of_them(names):
    one, other = names
    assert in_order(one) == in_order(other)


def test_what_the_platform_leaves_out_has_the_values_of_the_contract(write):
    cluster = read(write()).cluster
    assert cluster.network_interface == "eth0"
    assert cluster.current_group_name == "homogeneousCluster"
    assert cluster.current_group_hosts == ()
    assert (cluster.groups, cluster.topology, cluster.addresses, cluster.is_heterogeneous) == ((), None, {}, False)


def test_instance_groups_are_read(write):
    given = resources(
        instance_groups=HETERO,
        current_group_name="cpu",
        current_instance_type="ml.c5.xlarge",
        network_interface_name="eth1",
        topology={"rack": 1},
    )
    cluster = read(write(resourceconfig=given)).cluster
    assert cluster.current_group_hosts == ("algo-1", "algo-2")
    assert [group.name for group in cluster.groups] == ["cpu", "gpu"]
    assert cluster.is_heterogeneous
    assert (cluster.network_interface, cluster.topology) == ("eth1", {"rack": 1})
    assert cluster.current_instance_type == "ml.c5.xlarge"


def test_one_group_is_not_heterogeneous_and_several_are(write):
    for count in (1, 2):
        cluster = read(write(resourceconfig=resources(instance_groups=HETERO[:count]))).cluster
        assert cluster.is_heterogeneous == (count == 2)


def test_hyperparameters_are_the_values_that_their_strings_hold(write):
    given = {"a": "1e3", "b": '"q"', "c": "", "d": 5, "e": None, "f": [1]}
    script = read(write(hyperparameters=given)).hyperparameters.script
    assert script == {"a": 1000.0, "b": "q", "c": "", "d": 5, "e": None, "f": [1]}


def test_channels_and_the_cluster_are_kept_as_they_were_written(write):
    channels = {"train": {"TrainingInputMode": "File"}, "live": {"TrainingInputMode": "Pipe"}, "odd": 1}
    settings = read(write(inputdataconfig=channels))
    assert {name: channel.described for name, channel in settings.channels.items()} == channels
    assert [name for name, channel in settings.channels.items() if channel.is_piped] == ["live"]
    assert settings.resource_config == RESOURCES


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_is_mandatory(write, name):
    layout = write()
    Path(layout.config, name).unlink()
    with pytest.raises(ConfigurationError, match=f"{name} is missing; the platform must write it"):
        read(layout)


@pytest.mark.parametrize("name", ["hyperparameters", "resourceconfig", "inputdataconfig"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not valid JSON"),
        pytest.param("[" * 100_000, "not valid JSON", id="deep"),
        ("{", "not valid JSON"),
        ("[]", "object, not list"),
        ("1", "object, not int"),
    ],
)
def test_a_file_that_holds_no_object_is_refused_by_name(write, name, content, reason):
    layout = write(**{name: content})
    with pytest.raises(ConfigurationError, match=f"{name}.json .*{reason}"):
        read(layout)


def test_a_file_that_is_not_utf_8_is_refused(write):
    layout = write()
    Path(layout.hyperparameters).write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigurationError, match="hyperparameters.json is not valid JSON"):
        read(layout)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"hosts": ["algo-1"]}, "lacks 'current_host'"),
        ({"current_host": "algo-1"}, "lacks 'hosts'"),
        (resources(current_host="algo-3"), "'algo-3', which is not among its hosts"),
        (resources(current_host=None), "None, which is not among its hosts"),
        (resources(hosts="algo-2"), "hosts must be a list of names, not 'algo-2'"),
        (resources(hosts=None), "hosts must be a list of names"),
        (resources(hosts=["algo-2", 3]), "hosts must be a list of names"),
        (resources(hosts=["algo-2", ""]), "hosts must be a list of names"),
        (resources(hosts=["algo-2", "algo-2"]), "names a host twice"),
        (resources(instance_groups=[{"instance_group_name": "a"}]), "lacks 'instance_type'"),
        (resources(instance_groups=["a"]), "does not describe a cluster"),
        (resources(instance_groups=3), "does not describe a cluster"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(write, content, reason):
    layout = write(resourceconfig=content)
    with pytest.raises(ConfigurationError, match=reason):
        read(layout)


def test_the_platform_may_give_addresses_with_or_without_a_port(write):
    cluster = read(write(), **{HOST_ADDRESSES: '{"algo-1": "10.0.0.5:99", "algo-2": "10.0.0.6"}'}).cluster
    assert cluster.addresses == {"algo-1": ("10.0.0.5", 99), "algo-2": ("10.0.0.6", WORLD_PORT)}
    assert not cluster.is_on_loopback
    assert read(write(), **{HOST_ADDRESSES: '{"algo-1": "127.0.0.1:99"}'}).cluster.is_on_loopback


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"algo-1": 5}', '{"algo-1": "10.0.0.5:x"}'])
def test_addresses_of_another_form_are_refused_with_an_example(write, text):
    with pytest.raises(ConfigurationError, match="ESTIMATOR_HOST_ADDRESSES must be a JSON object such as .*10.0.0.5"):
        read(write(), **{HOST_ADDRESSES: text})


# The platform's variables.


def test_without_variables_a_host_is_what_any_platform_would_start(write):
    settings = read(write())
    assert (settings.listen_fd, settings.lifeline_fd, settings.scratch, settings.overlay) == (None,) * 4
    assert (settings.hosts_per_machine, settings.world_timeout, settings.stop_timeout) == (1, 300.0, 120.0)
    assert (settings.shows_console, settings.trusts_network, settings.keeps_checkpoints) == (True, False, False)
    assert (settings.program, settings.framework_function, settings.job_name) == (None, None, None)
    assert (settings.hang_timeout, settings.steps, settings.launch_variables) == (1800.0, (), ())
    assert settings.restarts == (0, 0)


def test_variables_are_decoded(write):
    settings = read(
        write(checkpointconfig={}),
        ESTIMATOR_LISTEN_FD="3",
        ESTIMATOR_LIFELINE_FD="4",
        ESTIMATOR_HOSTS_PER_MACHINE="2",
        ESTIMATOR_WORLD_TIMEOUT="0.5",
        ESTIMATOR_CONSOLE="off",
        ESTIMATOR_TRUST_NETWORK="1",
        ESTIMATOR_OVERLAY_DIR="/overlay",
        ESTIMATOR_RESTARTS="2",
        ESTIMATOR_MAX_RESTARTS="5",
        SAGEMAKER_TRAINING_MODULE="a:b",
        TRAINING_JOB_NAME="job",
    )
    assert (settings.listen_fd, settings.lifeline_fd, settings.hosts_per_machine) == (3, 4, 2)
    assert (settings.world_timeout, settings.overlay) == (0.5, "/overlay")
    assert settings.restarts == (2, 5) and settings.restarts.next(None) == (3, 5)
    assert settings.restarts.next(4) == (4, 5)  # one of them has begun on other hosts only
    assert (settings.shows_console, settings.trusts_network, settings.keeps_checkpoints) == (False, True, True)
    assert (settings.framework_function, settings.job_name) == ("a:b", "job")


def test_a_variable_names_the_program_before_the_hyperparameter_does(write):
    layout = write(hyperparameters={"sagemaker_program": "a.py"})
    assert (read(layout).program, read(layout, SAGEMAKER_PROGRAM="b.py").program) == ("a.py", "b.py")
    assert read(layout, SAGEMAKER_PROGRAM="").program == "a.py"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("ESTIMATOR_WORLD_TIMEOUT", "soon", "must be a number such as 300, not 'soon'"),
        ("ESTIMATOR_STOP_TIMEOUT", "-1", "must be a number such as 120, not '-1'"),
        ("ESTIMATOR_HOSTS_PER_MACHINE", "inf", "must be a number such as 1, not 'inf'"),
        ("ESTIMATOR_LISTEN_FD", "first", "must be the number of a file descriptor, such as 3, not 'first'"),
        ("ESTIMATOR_TRUST_NETWORK", "yes", 'must be "1" or "0", not \'yes\''),
    ],
)
def test_a_variable_of_another_form_is_refused_with_what_it_should_be(write, name, text, reason):
    with pytest.raises(ConfigurationError, match=f"{name} {reason}"):
        read(write(), **{name: text})


# The secret.


def test_the_secret_is_read_byte_for_byte_and_then_gone_from_the_disk(write):
    layout = write()
    Path(layout.world_secret).write_bytes(b"\0secret\n\xff")
    assert read_secret(layout) == b"\0secret\n\xff"
    assert not Path(layout.world_secret).exists()


def test_a_platform_that_brings_only_channels_brings_the_secret_as_one(write):
    layout = write()
    place = Path(layout.channeled_secret)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"\0secret")
    assert read_secret(layout) == b"\0secret"
    assert not place.exists()


def test_the_toolkits_own_channels_are_none_of_the_scripts(write):
    layout = write(inputdataconfig={"train": {"A": "b"}, "estimator-code": {}, "estimator-world": {}})
    assert {name: channel.described for name, channel in read(layout).channels.items()} == {"train": {"A": "b"}}


def test_a_job_may_have_no_secret(write):
    assert read_secret(write()) is None


def test_an_empty_secret_is_refused_because_anybody_could_guess_it(write):
    layout = write()
    Path(layout.world_secret).touch()
    with pytest.raises(ConfigurationError, match="worldsecret is empty"):
        read_secret(layout)


# The variables that the platform left in a file.


def test_variables_are_read_from_their_file_and_then_gone_from_the_disk(write):
    layout = write(environment={"TOKEN": "a\nb", "EMPTY": ""})
    assert read_environment(layout) == {"TOKEN": "a\nb", "EMPTY": ""}
    assert not Path(layout.environment).exists()
    assert read_environment(layout) == {}


def test_a_variable_that_is_no_string_is_refused_by_name_and_its_value_not_shown(write):
    with pytest.raises(ConfigurationError, match="PIN is int") as refused:
        read_environment(write(environment={"PIN": 1234}))
    assert "1234" not in str(refused.value)
