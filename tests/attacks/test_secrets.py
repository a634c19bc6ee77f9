"""What a user's secrets meet on their way: which hosts see them, who else does, and where they are written down."""

from __future__ import annotations

import os

import pytest

from estimator_sdk import InvalidArgument, JobSpec, Plan, inheritance
from tests.conformance.conftest import Script

SAY_WHAT_IS_THERE = 'import os; print(*sorted(name for name in os.environ if name.startswith(("AWS_", "CI_", "H"))))'


@pytest.fixture(autouse=True)
def shell(monkeypatch):
    """The environment of a user who has credentials in it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "CI_", "HF_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "CI_PASSWORD", "HF_TOKEN"):
        monkeypatch.setenv(name, "x")


# Which variables a host has.


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        (None, "AWS_PROFILE AWS_SESSION_TOKEN CI_PASSWORD HF_TOKEN"),
        (True, "AWS_PROFILE AWS_SESSION_TOKEN CI_PASSWORD HF_TOKEN"),
        (False, ""),
        ([], ""),
        (["HF_TOKEN", "AWS_*", "ABSENT"], "AWS_PROFILE AWS_SESSION_TOKEN HF_TOKEN"),
        (["hf_token", "HF_TOKE"], ""),
    ],
)
def test_a_rank_sees_of_the_users_variables_those_that_are_chosen(script: Script, out, chosen, seen):
    job = script.run(SAY_WHAT_IS_THERE, inherit_environment=chosen)
    found = out(job).decode().split()
    assert [name for name in found if name.startswith(("AWS_", "CI_", "HF_"))] == seen.split()
    assert "HOME" in found


def test_a_world_starts_without_the_users_variables_and_environment_counts(script: Script, out):
    script_ = "import os; print(os.environ['HF_TOKEN'], 'CI_PASSWORD' in os.environ)"
    job = script.run(script_, hosts=2, processes=1, inherit_environment=False, environment={"HF_TOKEN": "given"})
    assert out(job) == b"given False\n" * 2


@pytest.mark.parametrize(
    ("chosen", "inherited", "shown"),
    [
        (None, ("*",), "inherits      all variables of this process"),
        (True, ("*",), "inherits      all variables of this process"),
        (False, inheritance.NEEDED, "inherits      CUDA_VISIBLE_DEVICES ESTIMATOR_* HOME"),
        (["AWS_*"], (*inheritance.NEEDED, "AWS_*"), "VIRTUAL_ENV AWS_*"),
    ],
)
def test_what_is_inherited_is_in_the_plan_and_travels_with_the_job(script: Script, chosen, inherited, shown):
    plan = script.estimator("", inherit_environment=chosen).plan()
    assert plan.inherited == inherited and shown in str(plan)
    assert Plan.from_json(plan.to_json()) == plan
    assert JobSpec.from_request(plan.request).plan("process").inherited == inherited


def of_document(script: Script, value: str) -> JobSpec:
    request = script.estimator("", inherit_environment=False).plan().request
    (name,) = (name for name in request["HyperParameters"] if name.endswith("_inherit_environment"))
    return JobSpec.from_request({**request, "HyperParameters": {**request["HyperParameters"], name: value}})


@pytest.mark.parametrize("value", ['"AWS_*"', "1", '["a", 1]', '[""]', '{"a": true}', "all"])
def test_a_document_with_another_kind_of_choice_is_refused(script, value):
    with pytest.raises(InvalidArgument, match="must be True, False, or a list of names") as refused:
        of_document(script, value).plan("process")
    assert refused.value.argument == "inherit_environment"


def test_a_container_gets_those_that_are_named_as_if_they_were_the_users_own(script: Script):
    plan = script.estimator("", environment={"HF_TOKEN": "given"}).plan()
    key = "sagemaker_estimator_inherit_environment"
    around = {"AWS_PROFILE": "p", "HF_TOKEN": "inherited", "PATH": "/bin"}
    made = inheritance.for_containers(plan, {key: ["AWS_*", "HF_TOKEN"]}, around)
    assert made.environment == {"AWS_PROFILE": "p", "HF_TOKEN": "given"}
    for nothing in ({}, {key: False}, {key: []}):
        assert inheritance.for_containers(plan, nothing, around).environment == {"HF_TOKEN": "given"}
    with pytest.raises(InvalidArgument, match="of its image's"):
        inheritance.for_containers(plan, {key: True}, around)


def test_an_instance_of_the_service_can_be_given_none():
    key = "sagemaker_estimator_inherit_environment"
    inheritance.refuse_inherited({})
    inheritance.refuse_inherited({key: False})
    for chosen in (True, ["HF_TOKEN"]):
        with pytest.raises(InvalidArgument, match="shown to whoever may describe the job"):
            inheritance.refuse_inherited({key: chosen})
