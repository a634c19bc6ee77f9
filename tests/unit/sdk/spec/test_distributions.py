import json

import pytest
from estimator_container.contract.reserved import Hyperparameters, Reserved
from estimator_container.worlds.mpi.world import MpiWorld, from_reserved

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec.distributions import parse
from estimator_sdk.spec.distributions.mpi import Mpi
from estimator_sdk.spec.distributions.multi_worker_mirrored_strategy import MultiWorkerMirroredStrategy
from estimator_sdk.spec.distributions.torch_distributed import TorchDistributed


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ({}, None),
        ({"mpi": {"enabled": True}}, Mpi(True)),
        ({"mpi": {"enabled": False}}, Mpi(False)),
        ({"mpi": {"enabled": True, "processes_per_host": 2}}, Mpi(True, 2)),
        ({"mpi": {"enabled": True, "processes_per_host": None, "custom_mpi_options": None}}, Mpi(True)),
        ({"torch_distributed": {"enabled": True}}, TorchDistributed(True)),
        ({"torch_distributed": {"enabled": True, "processes_per_host": 2}}, TorchDistributed(True, 2)),
        ({"multi_worker_mirrored_strategy": {"enabled": True}}, MultiWorkerMirroredStrategy(True)),
        ({"mpi": {"enabled": False}, "torch_distributed": {"enabled": True}}, TorchDistributed(True)),
        (
            {"mpi": {"enabled": True, "processes_per_host": 8, "custom_mpi_options": "-x 'A=b c'"}},
            Mpi(True, 8, "-x 'A=b c'"),
        ),
    ],
)
def test_what_is_right_is_parsed(given, expected):
    assert parse(given) == expected


@pytest.mark.parametrize("name", ["mpi", "torch_distributed"])
@pytest.mark.parametrize("wrong", [0, -1, True, False, "1", 1.5, 2.0, [2], "two"])
def test_processes_per_host_is_a_whole_number_of_at_least_one(name, wrong):
    with pytest.raises(InvalidArgument, match="whole number of at least 1") as raised:
        parse({name: {"enabled": True, "processes_per_host": wrong}})
    assert raised.value.argument == f"distribution[{name!r}]['processes_per_host']"
    assert repr(wrong) in str(raised.value)


@pytest.mark.parametrize(
    ("given", "argument", "words"),
    [
        ("mpi", "distribution", "must be a dict such as"),
        ([("mpi", {})], "distribution", "must be a dict"),
        ({"mpii": {"enabled": True}}, "distribution['mpii']", "did you mean 'mpi'"),
        ({"MPI": {"enabled": True}}, "distribution['MPI']", "did you mean 'mpi'"),
        ({1: {}}, "distribution[1]", "is not a distribution"),
        ({"smdistributed": {}}, "distribution['smdistributed']", "not supported; use one of mpi, multi_worker"),
        ({"torch_distribute": {}}, "distribution['torch_distribute']", "did you mean 'torch_distributed'"),
        ({"torch_distributed": None}, "distribution['torch_distributed']", "must be a dict"),
        ({"torch_distributed": {}}, "distribution['torch_distributed']['enabled']", "is absent"),
        (
            {"torch_distributed": {"enabled": True, "custom_mpi_options": ""}},
            "distribution['torch_distributed']['custom_mpi_options']",
            "is not known",
        ),
        (
            {"multi_worker_mirrored_strategy": {"enabled": True, "processes_per_host": 2}},
            "distribution['multi_worker_mirrored_strategy']['processes_per_host']",
            "is not known",
        ),
        (
            {"mpi": {"enabled": True}, "torch_distributed": {"enabled": True}},
            "distribution",
            "must enable one distribution, but enables mpi and torch_distributed",
        ),
        (
            {"mpi": {"enabled": True}, "instance_groups": []},
            "distribution['instance_groups']",
            "not supported",
        ),
        ({"mpi": True}, "distribution['mpi']", "must be a dict"),
        ({"mpi": {}}, "distribution['mpi']['enabled']", "is absent"),
        ({"mpi": {"processes_per_host": 2}}, "distribution['mpi']['enabled']", "is absent"),
        ({"mpi": {"enabled": "true"}}, "distribution['mpi']['enabled']", "True or False"),
        ({"mpi": {"enabled": 1}}, "distribution['mpi']['enabled']", "True or False"),
        (
            {"mpi": {"enabled": True, "process_per_host": 2}},
            "distribution['mpi']['process_per_host']",
            "did you mean 'processes_per_host'",
        ),
        (
            {"mpi": {"enabled": True, "custom_mpi_options": ["-v"]}},
            "distribution['mpi']['custom_mpi_options']",
            "must be a str",
        ),
        (
            {"mpi": {"enabled": True, "custom_mpi_options": "-x 'A"}},
            "distribution['mpi']['custom_mpi_options']",
            "check the quotes",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_named(given, argument, words):
    with pytest.raises(InvalidArgument, match=words.replace("(", r"\(")) as raised:
        parse(given)
    assert raised.value.argument == argument
    assert str(raised.value).startswith(argument)


def told(distribution):
    """The hyperparameters of a job that has nothing but this."""
    return distribution.added_to(Reserved()).encode()


def test_hyperparameters_are_json_under_the_names_that_the_toolkit_reads():
    assert told(Mpi(True, 2, "-x A=b")) == {
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "2",
        "sagemaker_mpi_custom_mpi_options": json.dumps("-x A=b"),
    }
    assert told(Mpi(True)).keys() == {
        "sagemaker_mpi_enabled",
        "sagemaker_mpi_custom_mpi_options",
    }
    reserved = Hyperparameters.read(told(Mpi(True, 2))).reserved
    assert from_reserved(reserved, ("algo-1",), 0) == MpiWorld(("algo-1",), 2)


def test_the_other_distributions_go_by_the_names_of_the_sagemaker_sdk():
    assert told(TorchDistributed(True, 2)) == {
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "2",
    }
    assert told(TorchDistributed(True)) == {"sagemaker_torch_distributed_enabled": "true"}
    assert told(MultiWorkerMirroredStrategy(True)) == {"sagemaker_multi_worker_mirrored_strategy_enabled": "true"}
