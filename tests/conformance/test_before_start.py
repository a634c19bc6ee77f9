"""P: what is known before anything starts."""

from __future__ import annotations

import json
import re

import pytest

from estimator_sdk import Estimator, InvalidArgument

WRONG = {
    "an unknown argument": ({"instance_typ": "local"}, "instance_typ.*instance_type"),
    "a count that is text": ({"instance_count": "2"}, "instance_count.*'2'"),
    "a count that is a bool": ({"instance_count": True}, "instance_count.*True"),
    "no host": ({"instance_count": 0}, "instance_count.*0"),
    "an unknown instance type": (
        {"instance_type": "ml.p3.3xlarge"},
        r"ml\.p3\.3xlarge.*ml\.p3\.(2|8|16)xlarge",
    ),
    "an unknown backend": ({"backend": "proces"}, "proces.*process"),
    "an unknown distribution": ({"distribution": {"mpy": {"enabled": True}}}, "mpy.*mpi"),
    "a misspelt key": (
        {"distribution": {"mpi": {"enabled": True, "process_per_host": 2}}},
        "process_per_host.*processes_per_host",
    ),
    "a reserved hyperparameter": ({"hyperparameters": {"sagemaker_program": "x"}}, "sagemaker_program"),
    "a value that JSON cannot express": ({"hyperparameters": {"when": object()}}, "when"),
    "an environment value that is no text": ({"environment": {"A": 1}}, "environment.*A"),
    "a negative limit": ({"max_run": -1}, "max_run"),
    "a path instead of a URI": ({"output_path": "/tmp/out"}, "output_path.*file:///tmp/out"),
    "a hyperparameter with a NUL": ({"hyperparameters": {"text": "a\0b"}}, "text.*NUL"),
    "a variable with a NUL": ({"environment": {"A": "a\0b"}}, "A.*NUL"),
}


@pytest.mark.law("P1")
@pytest.mark.on_service
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named_before_anything_starts(where, home, tmp_path, name):
    wrong, message = WRONG[name]
    (tmp_path / "train.py").write_text("print('ran')")
    before = list(home.glob("jobs/*"))
    with pytest.raises(InvalidArgument) as refused:
        Estimator(**{"entry_point": str(tmp_path / "train.py"), **where, **wrong}).fit(logs="none")
    assert re.search(message, str(refused.value), re.DOTALL), str(refused.value)
    assert list(home.glob("jobs/*")) == before


@pytest.mark.law("P1")
@pytest.mark.on_service
def test_a_wrong_argument_of_fit_is_named(script):
    estimator = script.estimator("print('ran')")
    with pytest.raises(InvalidArgument, match="'all'"):
        estimator.fit(logs="al")
    with pytest.raises(InvalidArgument, match="job_name"):
        estimator.fit(job_name="not_allowed!", logs="none")
    name = f"law-taken-{estimator.backend}"
    estimator.fit(job_name=name, logs="none")
    with pytest.raises(InvalidArgument, match="taken"):
        estimator.fit(job_name=name, logs="none")


@pytest.mark.law("P2")
@pytest.mark.on_service
@pytest.mark.parametrize("processes", [None, 2])
def test_fit_runs_what_plan_says(script, out, processes, tmp_path):
    source = """
import json, os, sys
argv = open("/proc/self/cmdline").read().split("\\0")[:-1]
print(json.dumps([argv, os.environ["SM_CURRENT_HOST"], os.environ.get("RANK")]))
"""
    estimator = script.estimator(
        source,
        hosts=2,
        processes=processes,
        hyperparameters={"lr": 0.1, "name": "a b"},
        environment={"COLOUR": "red"},
    )
    name = f"law-plan-{estimator.backend}-{processes}"
    plan = estimator.plan(job_name=name)
    job = estimator.fit(job_name=name, logs="none")
    found = [json.loads(line.data) for line in job.logs(stream="stdout")]
    assert {(host, rank) for _, host, rank in found} == {
        (each.host, None if each.rank is None else str(each.rank)) for each in plan.ranks
    }
    # The kernel shows the interpreter by its path; a virtual environment's is a link to it.
    assert {tuple(_by_module(argv[1:])) for argv, _, _ in found} == {plan.command[1:]}
    text = str(plan)
    for shown in (name, "COLOUR=red", "--lr 0.1 --name 'a b'", "algo-1", "algo-2", plan.backend):
        assert shown in text


def _by_module(words):
    """The same command with the toolkit's own module by its name, where a host runs it by its path."""
    path = "/estimator_container/ranks/lone_script.py"
    split = (["-m", "estimator_container.ranks.lone_script"] if word.endswith(path) else [word] for word in words)
    return [word for each in split for word in each]


@pytest.mark.law("P2")
@pytest.mark.on_service
def test_planning_starts_nothing(script, home):
    before = list(home.glob("jobs/*"))
    script.estimator("print('ran')", hosts=2, processes=2).plan()
    assert list(home.glob("jobs/*")) == before
