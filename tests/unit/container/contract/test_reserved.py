"""What reserved hyperparameters may say, and that what is written is read again."""

import json

import pytest
from estimator_container.contract.reserved import Hyperparameters, Reserved, WrongHyperparameter
from estimator_container.contract.steps import Step

SAID = Reserved(
    program="train.py",
    submit_directory="s3://bucket/code.tar.gz",
    container_log_level=10,
    job_name="job-1",
    region="eu-west-1",
    instance_groups=["cpu"],
    processes_per_host=2,
    num_processes=4,
    custom_mpi_options="",
    stop_timeout=30,
    hang_timeout=0,
    cpus=1.5,
    memory=4,
    checkpoint_keep=5,
    queue=True,
    spare_hosts=1,
    arguments=(),
    command=("bash", "run.sh", ""),
    steps=(Step("1", "a"),),
    inherit_environment=False,
    launch_variables=("OMPI_MCA_btl",),
    distributions={"mpi": True, "parameter_server": False},
)
WIRE = {
    "sagemaker_program": '"train.py"',
    "sagemaker_submit_directory": '"s3://bucket/code.tar.gz"',
    "sagemaker_container_log_level": "10",
    "sagemaker_job_name": '"job-1"',
    "sagemaker_region": '"eu-west-1"',
    "sagemaker_distribution_instance_groups": '["cpu"]',
    "sagemaker_mpi_num_of_processes_per_host": "2",
    "sagemaker_mpi_num_processes": "4",
    "sagemaker_mpi_custom_mpi_options": '""',
    "sagemaker_estimator_stop_timeout": "30",
    "sagemaker_estimator_hang_timeout": "0",
    "sagemaker_estimator_cpus": "1.5",
    "sagemaker_estimator_memory": "4",
    "sagemaker_estimator_checkpoint_keep": "5",
    "sagemaker_estimator_queue": "true",
    "sagemaker_estimator_spare_hosts": "1",
    "sagemaker_estimator_arguments": "[]",
    "sagemaker_estimator_command": '["bash", "run.sh", ""]',
    "sagemaker_estimator_steps": '[{"name": "1", "run": "a"}]',
    "sagemaker_estimator_inherit_environment": "false",
    "sagemaker_estimator_launch_variables": '["OMPI_MCA_btl"]',
    "sagemaker_mpi_enabled": "true",
    "sagemaker_parameter_server_enabled": "false",
}


def test_each_has_its_name_and_what_is_written_is_read_again():
    assert SAID.encode() == WIRE
    assert Hyperparameters.read(WIRE).reserved == SAID


def test_what_is_not_said_is_not_written_and_null_says_nothing():
    assert Reserved().encode() == {}
    assert Hyperparameters.read(dict.fromkeys(set(WIRE) - set(_enabled()), "null")).reserved == Reserved()


def _enabled():
    return [name for name in WIRE if name.endswith("_enabled")]


@pytest.mark.parametrize(("text", "enabled"), [("true", True), ("True", True), ('"true"', True), ("false", False)])
def test_what_enables_a_distribution(text, enabled):
    assert Hyperparameters.read({"sagemaker_mpi_enabled": text}).reserved.distributions == {"mpi": enabled}


WORDS = ("bash run.sh", {"a": 1}, 3, ["a", 1], ["a\0b"], ["\ud800"])
NUMBERS = ("soon", [2], True, -1, float("nan"), 10**400)
COUNTS = (0, "2", True, 1.5, "many")
TEXTS = (5, True, [], ["a"], {"a": 1}, "\ud800", "a\0")
NAMES = ("AWS_*", 1, ["a", 1], {"a": True})


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("program", TEXTS, "must be the name of a file|holds a NUL"),
        ("submit_directory", TEXTS, "must be the name of a file|holds a NUL"),
        (
            "job_name",
            ("a\0", "\ud800"),
            "holds a NUL or an unpaired surrogate, which neither a variable nor an argument can hold",
        ),
        ("mpi_num_of_processes_per_host", COUNTS, "must be a whole number of at least 1, such as 2, not "),
        ("mpi_num_processes", COUNTS, "must be a whole number of at least 1, such as 2, not "),
        ("mpi_custom_mpi_options", TEXTS, "must be one string, such as '-x NAME'|holds a NUL"),
        ("estimator_stop_timeout", NUMBERS, "must be a number of seconds, such as 120, not "),
        ("estimator_hang_timeout", NUMBERS, "must be a number of seconds, such as 120, not "),
        ("estimator_cpus", NUMBERS, "must be a number of CPUs, such as 1.5, not "),
        ("estimator_memory", NUMBERS, "must be a number of GiB, such as 4, not "),
        ("estimator_checkpoint_keep", COUNTS, "must be a whole number of at least 1, such as 2, not "),
        ("estimator_queue", (1, "true", []), "must be true or false, not "),
        ("estimator_spare_hosts", COUNTS, "must be a whole number of at least 1, such as 2, not "),
        ("estimator_arguments", WORDS, "must be a JSON list of strings, such as|holds a NUL"),
        ("estimator_command", (*WORDS, []), "must be a JSON list of a program and its arguments, such as|holds a NUL"),
        ("estimator_launch_variables", WORDS, "must be a JSON list of strings, such as|holds a NUL"),
        ("estimator_inherit_environment", NAMES, "must be True, False, or a list of names"),
    ],
)
def test_what_one_may_not_say_is_refused_by_name_and_with_what_it_may(name, wrong, words):
    for value in wrong:
        with pytest.raises(WrongHyperparameter, match=f"^sagemaker_{name} ({words})") as refused:
            Reserved.read({f"sagemaker_{name}": value})
        assert refused.value.name == f"sagemaker_{name}"


def test_frameworks_get_the_other_reserved_names_and_those_of_the_distributions():
    ours = [name for name in WIRE if not name.startswith(("sagemaker_mpi", "sagemaker_dist", "sagemaker_par"))]
    known = {name: WIRE[name] for name in ours}
    ignored = {"sagemaker_enable_cloudwatch_metrics": 1, "sagemaker_s3_output": 1, "sagemaker_estimator_newer": 1}
    others = {"sagemaker_new": 5, "sagemaker_mpi_enabled": True, "sagemaker_mpi_num_processes": 4}
    given = {**known, **ignored, **others, "_tuning_objective_metric": 1, "lr": 3}
    assert Hyperparameters.read(given).for_frameworks == others


def test_carried_arguments_stand_in_the_place_of_the_hyperparameters():
    words = ["data", "--lr", "0.1", "-v", "-v", "", "a b", "\udcff"]
    carried = Hyperparameters.read({"lr": "0.1", "sagemaker_estimator_arguments": json.dumps(words)})
    assert carried.arguments == words
    assert carried.script == {"lr": 0.1}
    assert carried.for_frameworks == {}


def test_without_carried_arguments_the_hyperparameters_are_the_arguments():
    assert Hyperparameters.read({"lr": 0.1, "sagemaker_program": "train.py"}).arguments == ["--lr", "0.1"]
    assert Hyperparameters.read({"lr": 0.1, "sagemaker_estimator_arguments": []}).arguments == []
