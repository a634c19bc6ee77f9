from __future__ import annotations

import json
import time

import pytest

from estimator_sdk import BackendError
from estimator_sdk.backends.sagemaker import log_events
from estimator_sdk.backends.sagemaker.log_events import block_of
from tests.waiting import SECONDS

from .conftest import cloud, in_background

START = int(time.time() * 1000) - 3_600_000  # milliseconds since 1970; the service takes nothing that is old


@pytest.fixture
def job(platform, script):
    return cloud(script, instance_count=3).fit(wait=False, job_name=f"log-{time.monotonic_ns()}")


def test_all_hosts_are_merged_by_time_and_told_apart(platform, job):
    platform.writes(job.name, "algo-1", "[1,0]<stdout>:a", "[1,1]<stderr>:b", start=START)
    platform.writes(job.name, "algo-2", "[1,2]<stdout>:c", "plain words", start=START - 1)
    platform.ends(job.name)
    found = [(line.host, line.rank, line.stream, line.data) for line in job.logs(follow=True)]
    assert sorted(found[1:3]) == [("algo-1", 0, "stdout", b"a\n"), ("algo-2", None, "stdout", b"plain words\n")]
    assert [found[0], found[3]] == [("algo-2", 2, "stdout", b"c\n"), ("algo-1", 1, "stderr", b"b\n")]
    assert [line.data for line in job.logs(rank=1)] == [b"b\n"]
    assert [line.time_ns for line in job.logs(host="algo-2")] == [(START - 1) * 10**6, START * 10**6]


def test_a_log_of_many_pages_ends_and_has_every_line_once(platform, job):
    texts = [f"line {number}" for number in range(12_345)]  # a page has 10,000 events at most
    platform.writes(job.name, "algo-1", *texts, start=START)
    platform.ends(job.name)
    assert [line.data.decode().rstrip() for line in job.logs()] == texts
    assert sum(1 for _ in job.logs(follow=True)) == len(texts)


def test_more_hosts_than_a_page_of_streams_has_are_all_read(platform, job):
    hosts = [f"algo-{number}" for number in range(1, 121)]
    for host in hosts:
        platform.writes(job.name, host, f"[{host}]<stdout>:up", start=START)
    platform.tell(job.name, ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 120})
    platform.ends(job.name)
    assert sorted(line.host for line in job.logs(follow=True)) == sorted(hosts)


def test_a_job_whose_name_begins_another_ones_has_its_own_log(platform, script):
    for name in ("begin", "begin-again"):
        job = cloud(script).fit(wait=False, job_name=name)
        platform.writes(name, "algo-1", name, start=START)
        platform.ends(name)
    assert [line.data for line in job.attach("begin").logs()] == [b"begin\n"]


def test_a_job_that_has_written_nothing_has_an_empty_log(platform, job):
    platform.ends(job.name)
    assert list(job.logs(follow=True)) == [] and list(job.logs()) == []


@pytest.mark.parametrize("ago", [0, 86400], ids=["", "by a clock that is a day behind"])
def test_lines_come_while_the_job_runs_and_those_after_its_end_are_not_lost(platform, job, monkeypatch, ago):
    seen = []
    monkeypatch.setattr(log_events, "QUIET_SECONDS", SECONDS)

    def run() -> None:
        platform.writes(job.name, "algo-1", "first")
        platform.waits_until(lambda: "first" in seen)
        platform.ends(job.name, TrainingEndTime=time.time() - ago)
        platform.waits_until(lambda: job._started._last["TrainingJobStatus"] == "Completed")  # as who follows has heard
        platform.writes(job.name, "algo-1", "late")
        platform.writes(job.name, "algo-2", "from a host that was silent")
        platform.waits_until(lambda: len(seen) == 3)
        monkeypatch.setattr(log_events, "QUIET_SECONDS", 0.1)

    with in_background(run):
        for line in job.logs(follow=True):
            seen.append(line.data.decode().rstrip())
    assert seen[0] == "first" and sorted(seen[1:]) == ["from a host that was silent", "late"]


def test_throttled_requests_are_repeated_and_no_line_is_lost_or_doubled(platform, job, aws_proxy):
    texts = [f"line {number}" for number in range(50)]
    platform.writes(job.name, "algo-1", *texts, start=START)
    platform.ends(job.name)
    aws_proxy.choose = lambda request: "throttle" if request.number % 3 < 2 else None
    assert [line.data.decode().rstrip() for line in job.attach(job.name).logs(follow=True)] == texts
    assert len(aws_proxy.requests) > 6


def test_throttling_that_does_not_end_is_an_error_that_says_so(platform, job, aws_proxy, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    attached = job.attach(job.name)
    aws_proxy.choose = lambda request: "throttle"
    with pytest.raises(BackendError) as raised:
        list(attached.logs())
    assert "AWS is throttling requests, and still was after 1 retries (Rate exceeded); try again later" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("message", "rank", "stream", "data"),
    [
        ("[1,12]<stdout>:a", 12, "stdout", b"a\n"),
        ("[2,1]<stdout>:a", 65537, "stdout", b"a\n"),
        ("[1,mpirank:3,algo-2]<stderr>:a", 3, "stderr", b"a\n"),
        ("[algo-2]<toolkit>:a", None, "toolkit", b"a\n"),
        ("[1,0]<stdout>:", 0, "stdout", b"\n"),
        ("[1,0]<stddiag>:a", None, "stdout", b"[1,0]<stddiag>:a\n"),
        ("[INFO] a", None, "stdout", b"[INFO] a\n"),
        ("ünï", None, "stdout", "ünï\n".encode()),
    ],
)
def test_the_tags_of_our_images_and_of_mpirun_are_read(message, rank, stream, data):
    line = block_of({"timestamp": 5, "message": message}, "algo-2")
    assert line == (5_000_000, "algo-2", rank, stream, data)


def test_what_fit_shows_of_a_line_is_what_the_host_wrote(platform, job):
    text = json.dumps({"a": [1, "[1,0]<stdout>:"]})
    platform.writes(job.name, "algo-3", f"[1,5]<stdout>:{text}", start=START)
    platform.ends(job.name)
    assert [line.tagged().decode() for line in job.logs()] == [f"[1,5]<stdout>:{text}\n"]
