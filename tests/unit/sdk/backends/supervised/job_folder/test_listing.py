"""The list of many jobs: a cache that may be old, damaged or gone, and never counts for more than a job's folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from estimator_sdk import list_jobs
from estimator_sdk.backends.port import Summary
from estimator_sdk.backends.supervised.job_folder import listing
from estimator_sdk.backends.supervised.job_folder.listing import summaries
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_record
from estimator_sdk.values.home import JobFolder, jobs_folder, list_cache
from tests.waiting import SECONDS

GONE = Process(1 << 22, "1")
"""No process has a number as high as the kernel's limit."""
DONE = Record("done", "Completed", "process", ("algo-1", "algo-2"), 1.0, ended=4.0, supervisor=GONE)
NAMES = [f"job-{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def made(name: str, **changes: object) -> Record:
    folder = JobFolder.for_job(name)
    folder.path.mkdir(parents=True, exist_ok=True)
    record = replace(DONE, name=name, **changes)
    write_record(record, folder)
    return record


def many() -> list[Summary]:
    """So many jobs that have ended, as a list shows them."""
    return [Summary.from_state(made(name, created=100.0 - number)) for number, name in enumerate(NAMES)]


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The names of the jobs whose records are read."""
    found: list[str] = []
    read_record = listing.read_record
    monkeypatch.setattr(listing, "read_record", lambda folder: (found.append(folder.name), read_record(folder))[1])
    return found


def cache() -> Path:
    return list_cache(jobs_folder())


def test_what_has_ended_is_read_once_and_what_goes_on_each_time(read):
    expected = many()
    running = made("running", status="InProgress", ended=None, created=200.0)
    for count in (41, 1, 1):
        read.clear()
        first, *others = summaries(jobs_folder())
        # Its supervisor is gone, which is a failure, and not one that its record tells.
        assert first == Summary.from_state(replace(running, status="Failed")) and others == expected
        assert len(read) == count
    made("running", created=200.0)
    assert summaries(jobs_folder())[0].status == "Completed"
    assert cache().stat().st_mode & 0o777 == 0o600


def test_a_folder_that_changed_counts_and_not_what_was_known_of_it(read):
    many()
    summaries(jobs_folder())
    read.clear()
    jobs = jobs_folder()
    made("job-0", status="Stopped", created=100.0)
    made("job-4", status="Stopped", created=96.0)
    shutil.rmtree(jobs / "job-1")
    (jobs / "job-2").rename(jobs / "elsewhere")
    shutil.copytree(jobs / "job-3", jobs / "copied")
    for one, other in (("job-4", "swapped"), ("job-5", "job-4"), ("swapped", "job-5")):
        (jobs / one).rename(jobs / other)
    (jobs / "job-6" / "record.json").unlink()
    assert {each.name: each.status for each in summaries(jobs)} == {
        **{name: "Completed" for name in NAMES if name not in ("job-1", "job-2", "job-6")},
        "job-0": "Stopped",
        "job-5": "Stopped",
        "elsewhere": "Completed",
        "copied": "Completed",
    }
    assert sorted(read) == ["copied", "elsewhere", "job-0", "job-4", "job-5", "job-6"]
    read.clear()
    assert len(summaries(jobs)) == 39 and read == ["job-6"]


def whole(text: str) -> str:
    """A cache of that content, which says that it is whole."""
    return f"jobs 1 {zlib.crc32(text.encode()):08x}\n{text}"


def forged(**changes: object) -> str:
    """A cache with one entry that is none, of a record that has not changed."""
    identity = listing._identity(str(JobFolder.for_job("job-0").record))
    entry = {"status": "Completed", "backend": "process", "hosts": ["algo-1"], "created": 1.0, "ended": None}
    return whole(json.dumps({"job-0": [identity, *(entry | changes).values()]}))


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_text(""),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage": lambda path: path.write_bytes(os.urandom(1 << 16)),
    "a digit": lambda path: path.write_text(path.read_text().replace("100.0", "900.0", 1)),
    "of another format": lambda path: path.write_text(path.read_text().replace("jobs 1", "jobs 2", 1)),
    "of something else": lambda path: path.write_text(whole("[" * 100_000)),
    "a list": lambda path: path.write_text(whole("[1]")),
    "no entry": lambda path: path.write_text(whole('{"job-0": 5}')),
    "a status": lambda path: path.write_text(forged(status=["Completed"])),
    "a job that goes on": lambda path: path.write_text(forged(status="InProgress")),
    "a time": lambda path: path.write_text(forged(created="yesterday")),
    "a number": lambda path: path.write_text(forged(ended=10**400)),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("dangling")),
    "a link without an end": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_cache_that_is_damaged_is_made_again_and_nobody_needs_to_know(damage, read):
    expected = many()
    summaries(jobs_folder())
    damage(cache())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summaries(jobs_folder()) == expected
    assert cache().is_file() and not cache().is_symlink()
    read.clear()
    assert summaries(jobs_folder()) == expected and read == []
    assert sorted(each.name for each in cache().parent.iterdir()) == ["jobs", "jobs.cache"]


def test_what_lies_in_its_place_and_cannot_be_replaced_is_left_there():
    expected = many()
    cache().mkdir()
    assert summaries(jobs_folder()) == expected
    assert sorted(each.name for each in cache().parent.iterdir()) == ["jobs", "jobs.cache"]


def test_a_record_that_cannot_be_understood_is_named_each_time_and_hides_no_other():
    expected = many()
    made("strange")
    JobFolder.for_job("strange").record.write_text("{")
    for _ in range(2):
        with pytest.warns(UserWarning, match="the record of the job strange cannot be read"):
            assert summaries(jobs_folder()) == expected


LISTS = """
import sys, warnings
warnings.simplefilter("error")
from estimator_sdk import list_jobs
sys.stdin.read(1)
for _ in range(20):
    assert len(list_jobs()) == 40
"""


def test_processes_that_list_at_once_do_not_disturb_each_other():
    many()
    argv = [sys.executable, "-c", LISTS]
    started = [subprocess.Popen(argv, stdin=subprocess.PIPE) for _ in range(4)]
    for process in started:
        process.stdin.write(b"x")
        process.stdin.flush()
    for _ in range(20):
        cache().unlink(missing_ok=True)
        assert len(list_jobs()) == 40
    for process in started:
        process.communicate(timeout=SECONDS)
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(each.name for each in cache().parent.iterdir()) == ["jobs", "jobs.cache"]


@pytest.fixture
def small_home(tmp_path, monkeypatch) -> Path:
    """A home on a disk of its own, of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    monkeypatch.setenv("ESTIMATOR_HOME", str(disk / "home"))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space"), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 12))


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_jobs_are_listed_on_a_disk_that_takes_nothing(small_home, trouble):
    expected = many()
    if trouble == "full":
        fill(small_home)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(small_home)], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert summaries(jobs_folder()) == expected
            assert [job.name for job in list_jobs()] == NAMES
    assert [each.name for each in jobs_folder().parent.iterdir()] == ["jobs"]


def test_the_cache_of_another_home_is_not_read(home, monkeypatch):
    many()
    summaries(jobs_folder())
    shutil.copytree(home, home.with_name("copy"))
    monkeypatch.setenv("ESTIMATOR_HOME", str(home.with_name("copy")))
    made("job-0", status="Stopped", created=100.0)
    assert summaries(jobs_folder())[0].status == "Stopped"
