import json

import pytest
from estimator_container.contract.reserved import Hyperparameters, Reserved
from estimator_container.contract.steps import Step

from estimator_sdk import Estimator
from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec.steps_argument import beginning_with, parse

STEPS = (Step("1", "a"), Step("train", "b"), Step("3", "c"))


def test_a_step_without_a_name_goes_by_its_number():
    assert parse(["a", {"name": "train", "run": "b"}, {"run": "c"}]) == STEPS


def test_the_container_reads_what_is_written():
    assert Hyperparameters.read(Reserved(steps=STEPS).encode()).reserved.steps == STEPS


@pytest.mark.parametrize(
    ("given", "argument", "words"),
    [
        ([], "steps", "empty"),
        (["a", "  "], "steps[1]['run']", "empty"),
        ([{"name": "a"}], "steps[0]", "`run`"),
        ([{"run": "a", "nam": "b"}], "steps[0]['nam']", "did you mean 'name'"),
        ([{"run": "a", "name": "x"}, {"run": "b", "name": "x"}], "steps[1]['name']", "earlier step"),
        (["a", {"run": "b", "name": "1"}], "steps[1]['name']", "earlier step"),
        ([{"run": "a", "name": "x" * 65}], "steps[0]['name']", "64"),
        ([{"run": "a", "name": "x\ny"}], "steps[0]['name']", "one line"),
    ],
)
def test_what_is_wrong_is_named(given, argument, words):
    with pytest.raises(InvalidArgument) as raised:
        parse(given)
    assert raised.value.argument == argument
    assert words in str(raised.value)


def test_a_job_can_begin_with_a_later_step():
    assert beginning_with(STEPS, "train") == STEPS[1:]
    with pytest.raises(InvalidArgument, match="did you mean 'train'") as raised:
        beginning_with(STEPS, "trian")
    assert raised.value.argument == "from_step"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"steps": ["a"]}, "steps has no effect without source_dir"),
        ({"steps": ["a"], "source_dir": ".", "entry_point": "a.py"}, "steps replaces entry_point"),
        ({"steps": ["a"], "source_dir": ".", "command": ["b"]}, "steps replaces command"),
        ({"steps": "python a.py", "source_dir": "."}, "must be a list"),
        ({"steps": [1], "source_dir": "."}, r"steps\[0\] must be a str or a dict"),
    ],
)
def test_steps_stand_in_the_place_of_an_entry_point(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        Estimator(**arguments)


def test_the_spec_carries_the_steps_and_no_program(tmp_path):
    (tmp_path / "digits").mkdir()
    estimator = Estimator(steps=["a", {"name": "train", "run": "b"}], source_dir=tmp_path / "digits")
    spec = estimator.spec()
    assert "sagemaker_program" not in spec.hyperparameters
    assert json.loads(spec.hyperparameters["sagemaker_estimator_steps"])[1] == {"name": "train", "run": "b"}
    assert spec.training_job_name.startswith("digits-")
