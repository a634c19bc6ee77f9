"""Which hosts the tasks of a barrier stage are, and how that is said where there is no stage."""

import pytest

from estimator_sdk import Estimator, InvalidArgument
from estimator_sdk.backends.spark import session
from estimator_sdk.backends.spark.on_executor import hosts_of

AT = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.1"}


@pytest.mark.parametrize(
    ("executors", "hosts"),
    [
        ("abab", [("a", [0, 2]), ("b", [1, 3])]),
        ("baab", [("b", [0, 3]), ("a", [1, 2])]),
        ("aab", [("part-1@a", [0]), ("part-2@a", [1]), ("b", [2])]),
        ("aaaabb", [("part-1@a", [0, 1]), ("part-2@a", [2, 3]), ("b", [4, 5])]),
        ("acb", [("a", [0]), ("c", [1]), ("b", [2])]),
        ("aaa", [("a", [0, 1, 2])]),
    ],
)
def test_all_hosts_have_as_many_tasks_and_none_is_on_two_executors(executors, hosts):
    found = hosts_of([{"executor": each, "address": AT[each], "gpus": []} for each in executors])
    assert [(host["name"], host["tasks"]) for host in found] == hosts
    assert len({len(host["tasks"]) for host in found}) == 1
    assert sorted(task for host in found for task in host["tasks"]) == list(range(len(executors)))
    assert len({host["name"] for host in found}) == len(found)
    for host in found:
        assert {AT[executors[task]] for task in host["tasks"]} == {host["address"]}
        assert len({executors[task] for task in host["tasks"]}) == 1


def test_tasks_of_an_executor_can_be_a_host_each():
    found = hosts_of([{"executor": each, "address": AT[each], "gpus": []} for each in "aab"], 1)
    assert [(host["name"], host["tasks"]) for host in found] == [("part-1@a", [0]), ("part-2@a", [1]), ("b", [2])]


def test_no_other_backend_has_executors(tmp_path):
    (tmp_path / "train.py").touch()
    with pytest.raises(InvalidArgument, match="asks for executors, but backend 'process' has none; leave out one"):
        Estimator(entry_point=tmp_path / "train.py", backend="process", instance_type="spark").plan()


@pytest.mark.parametrize(
    "chosen", [{"backend": "spark"}, {"instance_type": "spark"}], ids=lambda chosen: next(iter(chosen))
)
def test_without_a_session_there_are_no_executors(tmp_path, monkeypatch, chosen):
    monkeypatch.setattr(session, "active", lambda: None)  # another test of this process may have one
    (tmp_path / "train.py").touch()
    with pytest.raises(
        InvalidArgument, match="a Spark session, but this process has none; call SparkSession"
    ) as raised:
        Estimator(entry_point=tmp_path / "train.py", **chosen).plan()
    assert raised.value.argument == "backend"
