"""Which hosts the tasks of a barrier stage are, and how that is said where there is no stage."""

import pytest

from estimator_sdk import Estimator, HorovodRunner, InvalidArgument
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


def test_a_client_of_spark_connect_is_told_to_run_where_the_driver_is(tmp_path, monkeypatch):
    import pyspark.sql.utils

    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as builder.remote(…) sets it
    assert pyspark.sql.utils.is_remote()
    (tmp_path / "train.py").touch()
    with pytest.raises(
        InvalidArgument, match="is one of Spark Connect, .*; run this program where the driver is"
    ) as raised:
        Estimator(entry_point=tmp_path / "train.py", backend="spark").plan()
    assert raised.value.argument == "backend"
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    with pytest.warns(UserWarning, match=r"HorovodRunner\(np=1\) runs on this machine: .* or write np=-1"):
        assert HorovodRunner(np=1).run(lambda: 7) == 7
