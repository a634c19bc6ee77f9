"""What a user, or a file that a program wrote, hands over: what no process can be given is refused before the start.

A rank that the kernel does not start could say no more than "exit code 127", and not before it is its turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from estimator_container.runtime import exec_limits
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk import Estimator, HorovodRunner, InvalidArgument, Job, JobSpec, TrainingInput, list_jobs
from estimator_sdk.spec.job_document import ShuffleConfig
from tests.conformance.conftest import Script

Out = Callable[..., bytes]
ONE = exec_limits.ONE
SURROGATE = "\ud800"
SAY_HOW_MUCH = """
import os
print(len(os.environ["SM_TRAINING_ENV"]), sum(map(len, os.environ.values())))
"""


def refusal(script: Script, **arguments: Any) -> InvalidArgument:
    """The error of `plan()`, which leaves nothing behind."""
    files = {"train.py": SAY_HOW_MUCH}
    with pytest.raises(InvalidArgument) as refused:
        script.estimator(files, **arguments).plan()
    return refused.value


def most(script: Script, upper: int, arguments: Callable[[int], dict[str, Any]]) -> Estimator:
    """The estimator with the largest size, to 64, that `plan()` takes."""
    estimator = script.estimator(SAY_HOW_MUCH, **arguments(1))
    low = 1
    while upper - low > 64:
        middle = (low + upper) // 2
        for name, value in arguments(middle).items():
            setattr(estimator, name, value)
        try:
            estimator.plan()
            low = middle
        except InvalidArgument:
            upper = middle
    for name, value in arguments(low).items():
        setattr(estimator, name, value)
    return estimator


# Too much for the kernel.


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"hyperparameters": {"text": "x" * (ONE + 1)}}, "hyperparameters['text']", "131,072 bytes"),
        ({"hyperparameters": {"text": "x" * (ONE - 20)}}, "hyperparameters", "largest is 'text' with 131,055"),
        ({"hyperparameters": {"a": "é" * 21_000, "b": "é" * 900}}, "hyperparameters", "takes six bytes"),
        ({"hyperparameters": {f"k{n}": "x" * 2000 for n in range(70)}}, "hyperparameters", "SM_"),
        ({"hyperparameters": {"k" * ONE: 1}}, f"hyperparameters['{'k' * 80}…']", "131,073 bytes"),
        ({"arguments": ["a", "x" * (ONE + 1)]}, "arguments[1]", "131,072 bytes"),
        ({"arguments": ["x" * 1000] * 140}, "arguments", "SM_USER_ARGS"),
        ({"environment": {"A": "x" * (ONE - 1)}}, "environment['A']", "131,072 bytes"),
        ({"environment": {"A": "é" * (ONE // 2)}}, "environment['A']", "131,072 bytes"),
        ({"entry_point": None, "command": ["ls", "x" * (ONE + 1)]}, "command[1]", "131,072 bytes"),
        ({"entry_point": None, "steps": ["echo ; " + "x" * ONE]}, "steps['1']", "131,078 bytes"),
    ],
)
def test_what_is_too_long_for_one_argument_or_variable_is_refused_by_name_and_size(script, arguments, argument, words):
    error = refusal(script, **arguments)
    assert error.argument == argument
    assert words in str(error) and "file" in str(error)


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"hosts": 5_000}, "instance_count", "instance_count is 5,000"),
        ({"processes": 1, "mpi_options": "-x A=" + "x" * ONE}, "distribution", "custom_mpi_options makes"),
    ],
)
def test_what_makes_a_variable_of_the_contract_too_long_is_named(script, arguments, argument, words):
    error = refusal(script, **arguments)
    assert error.argument == argument and words in str(error)


@pytest.mark.parametrize(
    "arguments",
    [
        {"environment": {f"V{n}": "x" * 100_000 for n in range(60)}},
        {"entry_point": None, "command": ["ls", *(["x" * 100_000] * 60)]},
    ],
)
def test_what_is_too_much_together_is_refused_with_the_sizes(script, arguments):
    limit = exec_limits.limit_of_all(exec_limits.own_stack()) - exec_limits.ADDED - 4 * 1024
    assert f"the kernel accepts {limit:,}" in str(refusal(script, **arguments))


PROCESSES = "distribution['mpi']['processes_per_host']"
IN_A_WORLD = {"enabled": True, "processes_per_host": 99_999}


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"instance_count": 10**9}, "instance_count", "from 1 to 5000, not 1000000000"),
        ({"max_run": 10**400}, "max_run", "from 1 to 2147483647"),
        ({"distribution": {"mpi": {"enabled": True, "processes_per_host": 10**9}}}, PROCESSES, "is 1000000000, but a"),
        (
            {"distribution": {"torch_distributed": IN_A_WORLD}, "instance_count": 9},
            "distribution",
            "9 hosts with 99999",
        ),
    ],
)
def test_more_than_any_machine_starts_is_refused_before_it_is_counted_out(script, arguments, argument, words):
    error = refusal(script, **arguments)
    assert error.argument == argument and words in str(error)


TOO_LONG = 10**5000
"""A number that Python does not write out: see `sys.set_int_max_str_digits`."""
HELD = [TOO_LONG, -TOO_LONG, [TOO_LONG], {"k": TOO_LONG}, {TOO_LONG: 1}, [{"Key": TOO_LONG}]]


@pytest.mark.parametrize("name", [field.name for field in fields(Estimator)])
def test_a_number_too_long_to_be_written_is_refused_wherever_it_stands(tmp_path, name):
    (tmp_path / "train.py").touch()
    for value in HELD:
        with pytest.raises(InvalidArgument) as refused:
            Estimator(**{"entry_point": str(tmp_path / "train.py"), "backend": "process", name: value}).plan()
        assert str(refused.value).isprintable() and len(str(refused.value)) < 2000


def test_a_number_too_long_to_be_written_is_refused_at_the_other_doors(script):
    estimator = script.estimator(SAY_HOW_MUCH)
    doors: list[Callable[[], object]] = [
        lambda: estimator.plan(TOO_LONG),
        lambda: estimator.plan({TOO_LONG: "file:///a"}),
        lambda: estimator.plan(job_name=TOO_LONG),
        lambda: estimator.fit(logs=TOO_LONG),
        lambda: TrainingInput("file:///a", shuffle_config=TOO_LONG),
        lambda: HorovodRunner(np=TOO_LONG),
        lambda: Job.attach(TOO_LONG),
        lambda: list_jobs(backend=TOO_LONG),
        lambda: estimator.plan({"train": TrainingInput("file:///a", shuffle_config=ShuffleConfig(seed=TOO_LONG))}),
    ]
    for member in ("RetryStrategy", "StoppingCondition", "ResourceConfig", "OfLater"):
        inner = {"MaximumRetryAttempts": TOO_LONG, "MaxRuntimeInSeconds": TOO_LONG, "InstanceCount": TOO_LONG}
        doors.append(lambda member=member, inner=inner: JobSpec.from_request({"TrainingJobName": "a", member: inner}))
    for number, knock in enumerate(doors):
        with pytest.raises(InvalidArgument):
            knock()
            raise AssertionError(number)


def test_a_number_too_long_for_a_wait_is_refused(script: Script):
    job = script.run("", processes=1)
    with pytest.raises(InvalidArgument, match="timeout is a number of about 5,001 digits"):
        job.wait(TOO_LONG)
    assert job.wait(float("inf")) == job.wait(10**300) == "Completed"


def test_a_job_may_run_as_long_as_the_service_lets_it_and_longer(script: Script, out: Out):
    """28 days are more milliseconds than one wait of the kernel can have."""
    arguments = {"max_run": 28 * 86400, "hang_timeout": float("inf"), "distribution": {"mpi": {"enabled": True}}}
    assert out(script.estimator({"train.py": "print('ran')"}, **arguments).fit(logs="none")) == b"ran\n"


def test_variables_that_this_process_has_set_count(script, monkeypatch):
    monkeypatch.setenv("NOTEBOOK", "x" * ONE)
    error = refusal(script)
    assert error.argument == "environment" and "NOTEBOOK" in str(error) and "131,080" in str(error)


def test_the_most_that_one_variable_is_planned_with_runs(script: Script, out: Out):
    """Of text that takes six bytes a letter in JSON; the largest variable is the one that holds all the others."""
    job = most(script, 40_000, lambda size: {"hyperparameters": {"text": "é" * size}}).fit(logs="none")
    held, _ = map(int, out(job).split())
    assert 0.98 * ONE < held < ONE


def test_the_most_that_is_planned_together_runs_in_a_world(script: Script, out: Out):
    upper = 2 * exec_limits.limit_of_all(exec_limits.own_stack()) // 60
    many = most(
        script,
        upper,
        lambda size: {
            "environment": {f"V{n}": "x" * size for n in range(60)},
            "instance_count": 2,
            "distribution": {"mpi": {"enabled": True, "processes_per_host": 1}},
        },
    )
    job: Job = many.fit(logs="none")
    assert job.status == "Completed"
    sizes = [int(line.split()[-1]) for line in out(job).splitlines()]
    assert min(sizes) > 0.97 * exec_limits.limit_of_all(exec_limits.own_stack()) - exec_limits.ADDED


def of_open_mpi(size: int, hosts: int = 2) -> dict[str, Any]:
    """Arguments with 15 parameters of that many bytes, and names that Open MPI does not know."""
    world = {"mpi": {"enabled": True, "processes_per_host": 1}}
    environment = {f"OMPI_MCA_coll_attack_{n}": "x" * size for n in range(15)}
    return {"environment": environment, "instance_count": hosts, "distribution": world}


def test_what_open_mpi_hands_on_twice_counts_twice_where_it_has_daemons(script: Script):
    size = exec_limits.limit_of_all(exec_limits.own_stack()) * 9 // 10 // 15
    script.estimator(SAY_HOW_MUCH, **of_open_mpi(size, hosts=1)).plan()
    error = refusal(script, **of_open_mpi(size))
    assert error.argument == "environment"
    assert "OMPI_MCA_*" in str(error) and "twice" in str(error) and "ulimit -s" in str(error)


def test_the_most_parameters_of_open_mpi_that_are_planned_reach_its_daemons(script: Script, out: Out):
    limit = exec_limits.limit_of_all(exec_limits.own_stack())
    job = most(script, limit // 15, of_open_mpi).fit(logs="none")
    sizes = [int(line.split()[-1]) for line in out(job).splitlines()]
    assert len(sizes) == 2 and min(sizes) > 0.45 * limit


def test_a_job_that_nobody_planned_here_is_refused_by_its_host(script: Script, monkeypatch):
    monkeypatch.setattr("estimator_sdk.plan.kernel_limits.check_processes", lambda plan, *_: plan)
    failed = script.fail(SAY_HOW_MUCH, hyperparameters={"text": "x" * (ONE - 20)})
    assert failed.verdict.kind == "configuration"
    assert "the variable SM_USER_ARGS of the script is 131,077 bytes long" in failed.verdict.message


# What no argument and no variable can hold.


@pytest.mark.parametrize("text", ["a\0b", f"a{SURROGATE}b"])
@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("hyperparameters", lambda text: {"hyperparameters": {"name": text}}),
        ("hyperparameters", lambda text: {"hyperparameters": {"name": {"inner": text}}}),
        ("hyperparameters", lambda text: {"hyperparameters": {text: 1}}),
        ("hyperparameters", lambda text: {"hyperparameters": {"name": text}, "arguments": ["a"]}),
        ("environment", lambda text: {"environment": {"NAME": text}}),
        ("environment", lambda text: {"environment": {text: "value"}}),
        ("arguments", lambda text: {"arguments": [text]}),
        ("command", lambda text: {"entry_point": None, "command": ["ls", text]}),
        ("steps", lambda text: {"entry_point": None, "steps": [f"echo {text}"]}),
        ("distribution", lambda text: {"processes": 1, "mpi_options": f"-x A={text}"}),
    ],
)
def test_text_that_no_process_can_be_given_is_refused_by_name(script, argument, arguments, text):
    error = refusal(script, **arguments(text))
    assert error.argument.startswith(argument)
    assert "NUL" in str(error) and str(error).isprintable()


BAD_NAMES = ["", "=", "a=b", "a\nb", "a\rb", "\x1b[2J"]


@pytest.mark.parametrize("name", [*BAD_NAMES, "-", "--lr", "-x"])
def test_a_hyperparameter_that_could_be_no_option_is_refused(script, name):
    assert refusal(script, hyperparameters={name: 1}).argument == f"hyperparameters[{name!r}]"


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_variable_that_could_be_none_is_refused(script, name):
    assert refusal(script, environment={name: "1"}).argument == f"environment[{name!r}]"


@pytest.mark.parametrize(
    ("member", "name", "argument"),
    [
        *(("HyperParameters", name, "hyperparameters") for name in BAD_NAMES),
        *(("Environment", name, "environment") for name in BAD_NAMES),
        ("Environment", SURROGATE, "environment"),
        ("HyperParameters", "k" * ONE, "hyperparameters"),
    ],
)
def test_a_document_is_held_against_the_same(script, member, name, argument):
    request = script.estimator(SAY_HOW_MUCH).plan().request
    document = {**request, member: {**request.get(member, {}), name: "1"}}
    with pytest.raises(InvalidArgument) as refused:
        JobSpec.from_request(document).plan("process")
    assert refused.value.argument.startswith(argument)


TEXT = st.text(st.characters(), max_size=5)


@given(
    st.dictionaries(TEXT, TEXT | st.integers() | st.none() | st.lists(TEXT, max_size=2), max_size=3),
    st.dictionaries(TEXT, TEXT, max_size=3),
)
def test_whatever_is_planned_can_be_started(tmp_path_factory, hyperparameters, environment):
    script = Path(tmp_path_factory.getbasetemp(), "train.py")
    script.touch()
    given = {"hyperparameters": hyperparameters, "environment": environment}
    try:
        plan = Estimator(entry_point=script, backend="process", **given).plan()
    except InvalidArgument as error:
        assert str(error).isprintable()
        return
    variables = {f"SM_HP_{name.upper()}": "1" for name in hyperparameters}
    pid = os.posix_spawn("/bin/true", plan.command, {**plan.environment, **variables})
    assert os.waitpid(pid, 0)[1] == 0
