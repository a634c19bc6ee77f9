import json
from pathlib import Path

import pytest
from estimator_container.contract.configuration import (
    ConfigurationError,
    in_order,
    read_configuration,
    read_environment,
    read_secret,
)
from estimator_container.contract.names import HOST_ADDRESSES, WORLD_PORT, Layout
from hypothesis import given, strategies

RESOURCES = {"current_host": "algo-2", "hosts": ["algo-2", "algo-10", "algo-1"]}
FILES = {"hyperparameters.json": {}, "resourceconfig.json": RESOURCES, "inputdataconfig.json": {}}
HETERO = [
    {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-2", "algo-1"]},
    {"instance_group_name": "gpu", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-10"]},
]


@pytest.fixture(autouse=True)
def no_addresses(monkeypatch):
    monkeypatch.delenv(HOST_ADDRESSES, raising=False)


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


def test_the_hosts_have_the_order_of_a_plan_and_the_first_one_leads(write):
    cluster = read_configuration(write()).cluster
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
    cluster = read_configuration(write()).cluster
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
    cluster = read_configuration(write(resourceconfig=given)).cluster
    assert cluster.current_group_hosts == ("algo-1", "algo-2")
    assert [group.name for group in cluster.groups] == ["cpu", "gpu"]
    assert cluster.is_heterogeneous
    assert (cluster.network_interface, cluster.topology) == ("eth1", {"rack": 1})
    assert cluster.current_instance_type == "ml.c5.xlarge"


def test_one_group_is_not_heterogeneous_and_several_are(write):
    for count in (1, 2):
        cluster = read_configuration(write(resourceconfig=resources(instance_groups=HETERO[:count]))).cluster
        assert cluster.is_heterogeneous == (count == 2)


def test_hyperparameters_stay_the_strings_that_they_are_on_disk(write):
    given = {"a": "1e3", "b": '"q"', "c": "", "d": 5, "e": None}
    raw = read_configuration(write(hyperparameters=given)).raw_hyperparameters
    assert raw == {"a": "1e3", "b": '"q"', "c": "", "d": "5", "e": "null"}


def test_channels_and_the_cluster_are_kept_as_they_were_written(write):
    channels = {"train": {"TrainingInputMode": "File"}}
    configuration = read_configuration(write(inputdataconfig=channels))
    assert configuration.channels == channels
    assert configuration.resource_config == RESOURCES


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_is_mandatory(write, name):
    layout = write()
    Path(layout.config, name).unlink()
    with pytest.raises(ConfigurationError, match=f"{name} is missing; the platform must write it"):
        read_configuration(layout)


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
        read_configuration(layout)


def test_a_file_that_is_not_utf_8_is_refused(write):
    layout = write()
    Path(layout.hyperparameters).write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigurationError, match="hyperparameters.json is not valid JSON"):
        read_configuration(layout)


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
        read_configuration(layout)


def test_the_platform_may_give_addresses_with_or_without_a_port(write, monkeypatch):
    monkeypatch.setenv(HOST_ADDRESSES, '{"algo-1": "10.0.0.5:99", "algo-2": "10.0.0.6"}')
    cluster = read_configuration(write()).cluster
    assert cluster.addresses == {"algo-1": ("10.0.0.5", 99), "algo-2": ("10.0.0.6", WORLD_PORT)}


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"algo-1": 5}', '{"algo-1": "10.0.0.5:x"}'])
def test_addresses_of_another_form_are_refused_with_an_example(write, monkeypatch, text):
    monkeypatch.setenv(HOST_ADDRESSES, text)
    with pytest.raises(ConfigurationError, match="ESTIMATOR_HOST_ADDRESSES must be a JSON object such as .*10.0.0.5"):
        read_configuration(write())


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
    assert read_configuration(layout).channels == {"train": {"A": "b"}}


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
