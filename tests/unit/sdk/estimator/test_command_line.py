from __future__ import annotations

import os
from pathlib import Path

import pytest
from estimator_container.contract.reserved import Hyperparameters
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk import Estimator, InvalidArgument, JobSpec
from estimator_sdk.estimator.command_line import estimator_arguments, hyperparameters_of, named_by

# What a process can be given: any bytes but NUL, as Python shows them.
WORDS = st.lists(st.binary(max_size=20).filter(lambda word: b"\0" not in word).map(os.fsdecode), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("code")
    for name in ("train.py", "run.sh", "fit", "deep/train.py", "with space.py"):
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text("#!/bin/sh\n")
    return made


def words_of(spec: JobSpec) -> tuple[str | None, list[str]]:
    """The entry point of a job and what follows it, as the toolkit reads them; None and a whole command."""
    decoded = Hyperparameters.read(spec.hyperparameters or {})
    if decoded.reserved.command is not None:
        return None, list(decoded.reserved.command)
    return decoded.reserved.program, decoded.arguments


@given(arguments=WORDS)
def test_the_words_of_a_script_survive_the_document_of_the_job(folder, arguments):
    given_arguments = estimator_arguments(["python", "train.py", *arguments], str(folder))
    spec = JobSpec.from_request(Estimator(**given_arguments).spec().to_request())
    assert words_of(spec) == ("train.py", arguments)


@given(arguments=WORDS)
def test_the_words_of_a_command_survive_the_document_of_the_job(folder, arguments):
    given_arguments = estimator_arguments(["bash", "run.sh", *arguments], str(folder))
    spec = JobSpec.from_request(Estimator(**given_arguments).spec().to_request())
    assert words_of(spec) == (None, ["bash", "run.sh", *arguments])


@pytest.mark.parametrize(
    ("words", "entry_point"),
    [
        (["python", "train.py"], "train.py"),
        (["python3", "./train.py"], "train.py"),
        (["python", "deep/../train.py"], "train.py"),
        (["python", "deep/train.py"], "deep/train.py"),
        (["./fit"], "fit"),
        (["./run.sh"], "run.sh"),
        (["python", "with space.py"], None),  # the contract has no name for it
        (["python", "-X", "dev", "train.py"], None),
        (["python", "-m", "train"], None),
        (["python3.11", "train.py"], None),
        (["python"], None),
        (["./train.py"], None),
        (["bash", "run.sh"], None),
        (["echo", "train.py"], None),
        (["/bin/echo", "x"], None),
    ],
)
def test_what_the_contract_can_say_is_an_entry_point(folder, words, entry_point):
    found = estimator_arguments(words, str(folder))
    assert found.get("entry_point") == entry_point
    assert found.get("command") == (None if entry_point else tuple(words))


def test_an_absolute_path_into_the_folder_is_the_entry_point(folder):
    found = estimator_arguments(["python", str(folder / "deep" / "train.py"), "x"], str(folder))
    assert (found["entry_point"], found["arguments"]) == ("deep/train.py", ("x",))


@pytest.mark.parametrize("name", ["setup.py", "pyproject.toml"])
def test_a_script_beside_a_package_stays_a_script(tmp_path, name):
    (tmp_path / "train.py").touch()
    (tmp_path / name).touch()
    assert estimator_arguments(["python", "train.py"], str(tmp_path))["command"] == ("python", "train.py")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--lr", "0.1", "-b", "32"], {"lr": 0.1, "b": 32}),
        (["--lr", "-0.1"], {"lr": -0.1}),
        (
            ["--aa", "1e3", "--cc", "007", "--dd", "1.50", "--ee", "", "--ff", "null"],
            {"aa": "1e3", "cc": "007", "dd": "1.50", "ee": "", "ff": "null"},
        ),
        (["--verbose"], {}),
        (["--aa", "--bb"], {}),
        (["--aa", "1", "--aa", "2"], {}),
        (["--a", "1"], {}),
        (["--aa=1", "2"], {}),
        (["-ab", "1"], {}),
        (["--sagemaker_program", "x"], {}),
        (["data", "x"], {}),
        (["--a1", "x"] * 61, {}),
        ([], {}),
    ],
)
def test_options_with_one_value_each_are_hyperparameters(arguments, found):
    result = hyperparameters_of(arguments)
    assert {name: (type(value), value) for name, value in result.items()} == {n: (type(v), v) for n, v in found.items()}


def test_arguments_that_the_contract_would_give_in_the_same_order_are_carried_by_it_alone(folder):
    found = estimator_arguments(["python", "train.py", "--batch", "32", "--lr", "0.1"], str(folder))
    assert (found["hyperparameters"], found.get("arguments")) == ({"batch": 32, "lr": 0.1}, None)
    found = estimator_arguments(["python", "train.py", "--lr", "0.1", "--batch", "32"], str(folder))
    assert found["hyperparameters"] == {"batch": 32, "lr": 0.1}
    assert found["arguments"] == ("--lr", "0.1", "--batch", "32")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "there is no command"),
        (["python", "trian.py"], "did you mean 'train.py'?"),
        (["bash", "rnu.sh"], "did you mean 'run.sh'?"),
        (["./fitt"], "did you mean 'fit'?"),
        (["python", "deep"], "is not a file"),
        (["python", "../train.py"], "name that folder with --source-dir"),
        (["python", "/etc/passwd"], "name that folder with --source-dir"),
    ],
)
def test_a_script_that_the_hosts_would_not_get_is_refused(folder, words, sentence):
    with pytest.raises(InvalidArgument) as refused:
        estimator_arguments(words, str(folder))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "train.py", "x"], "train.py"),
        (["python", "-m", "a.b"], "a.b"),
        (["python", "-c", "1"], "python"),
        (["bash", "-c", "x"], "bash"),
        (["bash", "run.sh"], "run.sh"),
        (["echo"], "echo"),
    ],
)
def test_a_job_is_named_by_what_it_runs(words, name):
    assert named_by(words) == name
