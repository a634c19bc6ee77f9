import json

import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk import Estimator
from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec.restart_policy import RestartPolicy, restartable


def test_what_a_job_carries_is_read_as_it_was_written():
    policy = RestartPolicy(("signal", "deadlock"), max=5, within=3600.0, backoff=10.0)
    assert RestartPolicy.from_document(json.loads(json.dumps(policy.to_document()))) == policy
    least = RestartPolicy(("signal",))
    assert RestartPolicy.from_document(least.to_document()) == least


def test_every_kind_that_can_be_named_is_one_of_a_failure():
    assert set(restartable()) <= set(Kind)
    of_script = "deadlock early_exit exception exit_code import_error out_of_memory ranks_differ signal"
    assert restartable() == sorted([*of_script.split(), "frozen", "host_lost", "host_missing", "mpi", "platform"])


@pytest.mark.parametrize(
    ("given", "argument", "words"),
    [
        ({}, "restart_policy['on']", "must be a list of kinds of failures"),
        ({"on": []}, "restart_policy['on']", "must be a list of kinds of failures"),
        ({"on": "signal"}, "restart_policy['on']", "must be a list of kinds of failures"),
        ({"on": ["sigal"]}, "restart_policy['on']", "did you mean 'signal'?"),
        ({"on": ["requirements"]}, "restart_policy['on']", "which is not a kind that can be retried"),
        ({"on": ["signal"], "maximum": 3}, "restart_policy['maximum']", "is not known; did you mean 'max'?"),
        ({"on": ["signal"], "max": 0}, "restart_policy['max']", "from 1 to 1000, not 0"),
        ({"on": ["signal"], "max": True}, "restart_policy['max']", "from 1 to 1000, not True"),
        ({"on": ["signal"], "within": -1}, "restart_policy['within']", "must be a number of seconds, not -1"),
        ({"on": ["signal"], "within": 0}, "restart_policy['within']", "must be more than 0 seconds, not 0"),
        (
            {"on": ["signal"], "within": float("inf")},
            "restart_policy['within']",
            "must be a number of seconds, not inf",
        ),
        ({"on": ["signal"], "within": 10**400}, "restart_policy['within']", "must be a number of seconds, not 1"),
        ({"on": ["signal"], "backoff": "10"}, "restart_policy['backoff']", "of at most 3600, not '10'"),
        ({"on": ["signal"], "backoff": 1e9}, "restart_policy['backoff']", "of at most 3600"),
        (3, "restart_policy", "must be a dict or RestartPolicy, not 3"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_place_and_the_way_out(given, argument, words):
    with pytest.raises(InvalidArgument) as raised:
        Estimator(entry_point="train.py", restart_policy=given)
    assert raised.value.argument == argument
    assert words in str(raised.value)
