"""Logs and failures where the shared folder is a network file system that caches."""

from __future__ import annotations

import json

import pytest

from .cluster import ContainerCluster
from .jobs import assert_nothing_is_left, submit

pytestmark = pytest.mark.long
SHOWN_WITHIN_SECONDS = 15.0
"""From the moment a rank writes a line until it is shown on another machine, beside a busy machine; docs/slurm.md."""
WRITES = """
import os, time
for number in range(2000):
    print(f"{number:05}", "x" * (number % 97), flush=number % 7 == 0)
for number in range(40):
    print("now", time.time(), flush=True)
    time.sleep(0.2)
os.write(1, b"the last \\xff word")
"""
FOLLOWS = """
import json, time
from estimator_sdk import Job
late, seen = [], {}
for line in Job.attach(%r).logs(stream="stdout", follow=True):
    words = line.data.split()
    if words[0] == b"now":
        late.append(time.time() - float(words[1]))
    seen.setdefault(line.host, []).append(line.data.decode(errors="surrogateescape"))
print(json.dumps([late, seen]))
"""
WAITS_TO_BE_STOPPED = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("was asked to stop"))
print("there", flush=True)
time.sleep(600)
"""
SEES_AND_STOPS = """
import json
from estimator_sdk import Job, list_jobs
job = Job.attach({name!r})
seen = [job.status, [line.data.decode() for line in job.logs(stream="stdout")], [each.name for each in list_jobs()]]
job.stop()
job.wait(timeout=60)
print(json.dumps([*seen, job.status, [line.data.decode() for line in job.logs(stream="stderr")]]))
"""


def test_the_shared_folder_is_a_network_file_system_that_caches(containers: ContainerCluster):
    for machine in ("login", "n1"):
        mounted = containers.run("sh", "-c", "stat -f -c %T /shared; ls -A /shared", machine=machine).split()
        assert mounted[0] == "fuseblk" or "fuse" in mounted[0], mounted
        assert {"home", "software"} <= {*mounted}
    containers.login("echo before > kept; cat kept")
    containers.run("sh", "-c", "stat -c %s /shared/home/ada/kept", machine="n1")
    containers.login("echo and after >> kept")
    assert containers.run("sh", "-c", "stat -c %s /shared/home/ada/kept", machine="n1").strip() == "7"  # cached


@pytest.mark.law("L1", "L4")
def test_what_ranks_write_is_followed_from_another_machine_byte_for_byte(containers: ContainerCluster):
    job = submit(containers, WRITES)
    late, seen = json.loads(containers.python(FOLLOWS % job.name))
    expected = [f"{number:05} {'x' * (number % 97)}\n" for number in range(2000)]
    assert set(seen) == {"algo-1", "algo-2"}
    for host, lines in seen.items():
        assert lines[:2000] == expected, host
        assert [line.split()[0] for line in lines[2000:-1]] == ["now"] * 40, host
        assert lines[-1] == "the last \udcff word", host
    assert len(late) == 80 and max(late) < SHOWN_WITHIN_SECONDS, max(late)
    assert job.end()["status"] == "Completed"
    assert_nothing_is_left(job, "n1", "n2")


@pytest.mark.law("L1", "F4")
def test_a_job_is_seen_followed_and_stopped_from_another_machine_that_people_log_in_on(containers: ContainerCluster):
    job = submit(containers, WAITS_TO_BE_STOPPED)
    job.wait_for_line("there", times=2)
    said = containers.python(SEES_AND_STOPS.format(name=job.name), machine="controller")
    status, lines, names, ended, last_words = json.loads(said)
    assert (status, lines) == ("InProgress", ["there\n"] * 2)
    assert job.name in names
    assert (ended, last_words) == ("Stopped", ["was asked to stop\n"] * 2)
    assert job.end()["status"] == "Stopped"
    assert_nothing_is_left(job, "n1", "n2")
