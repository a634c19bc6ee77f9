"""Leases on the slots of a machine, by processes that come and go."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from estimator_sdk.backends.ssh.on_host.room.leases import Lease, Ticket

HOLDS = """
import sys
from pathlib import Path
from estimator_sdk.backends.ssh.on_host.room.leases import Lease, Ticket
lease = Lease("other", Ticket(1.0, "other"), int(sys.argv[2]), 4, Path(sys.argv[1]))
print(lease.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lease(tmp_path):
    """Make the lease of a job on a machine of four slots."""
    made = []

    def make(name: str, slots: int, since: float = 5.0, limit: int = 4) -> Lease:
        made.append(Lease(name, Ticket(since, name), slots, limit, tmp_path / "leases"))
        return made[-1]

    yield make
    for each in made:
        each.close()
    assert not any(each._path.exists() for each in made)


@pytest.fixture
def another_process(tmp_path):
    """One that holds a lease of so many slots."""
    started = []

    def start(slots: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDS, str(tmp_path / "leases"), str(slots)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_jobs_share_the_slots_of_a_machine_as_long_as_there_are_some(lease, another_process):
    another_process(2)
    assert lease("a", 2).take() == ""
    assert lease("b", 1).take() == "of 4 slots other has 2, a has 2, and b needs 1"


def test_what_a_process_that_was_killed_has_left_is_not_believed(lease, another_process, tmp_path):
    process = another_process(4)
    mine = lease("a", 1)
    assert mine.take() == "of 4 slots other has 4, and a needs 1"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list((tmp_path / "leases").iterdir())) == 2
    assert mine.take() == ""
    assert len(list((tmp_path / "leases").iterdir())) == 1


def test_who_waits_comes_before_who_came_later_and_takes_nothing_from_who_came_before(lease):
    held, first, second = lease("held", 3), lease("first", 4, since=6.0), lease("second", 1, since=7.0)
    assert held.take() == ""
    assert first.who_is_before() == "of 4 slots held has 3, and first needs 4"
    assert second.take() == "of 4 slots held has 3, first waits for 4, and second needs 1"
    held.give_back()
    assert held.who_is_before() == "" and held.take() == ""  # its ticket is the earliest still
    held.close()
    assert first.take() == ""


def test_a_job_that_is_alone_has_room_and_one_without_a_limit_too(lease):
    assert lease("large", 9).take() == ""
    assert lease("free", 9, limit=0).take() == ""


def test_hosts_of_one_job_on_one_machine_do_not_wait_for_each_other(tmp_path):
    ticket = Ticket(1.0, "job")
    both = [Lease("job", ticket, 4, 4, tmp_path / "leases") for _ in range(2)]
    assert [each.take() for each in both] == ["", ""]
    for each in both:
        each.close()


def test_what_is_no_lease_is_passed_over(lease, tmp_path):
    mine = lease("a", 4)
    (tmp_path / "leases" / "text").write_text("no lease")
    os.mkfifo(tmp_path / "leases" / "pipe")
    (tmp_path / "leases" / "link").symlink_to("/etc/passwd")
    assert mine.take() == ""
    for name in ("pipe", "link"):
        (tmp_path / "leases" / name).unlink()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff\xfe", ""),
        (b"[]", ""),
        (b"{}", ""),
        (b"[" * 4096, ""),
        (b'{"job": "odd", "ticket": [0, "odd"], "slots": 1e400, "is_held": true}', ""),
        (b'{"job": "odd", "ticket": [0, "odd"], "slots": -9, "is_held": true}', ""),
        (
            b'{"job": "\\u001b[2J", "ticket": [0, "odd"], "slots": 4, "is_held": true}',
            r"of 4 slots \x1b[2J has 4, and a",
        ),
    ],
)
def test_whatever_another_user_holds_there_neither_ends_a_job_nor_makes_room_for_one(lease, tmp_path, text, words):
    first = lease("a", 3)
    (tmp_path / "leases" / "0-odd").write_bytes(text)
    with (tmp_path / "leases" / "0-odd").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = first.take()
        assert told.startswith(words) and bool(told) is bool(words)
        assert words or lease("b", 2).take() != ""


def test_a_folder_of_leases_that_is_none_is_said(tmp_path):
    (tmp_path / "leases").write_text("")
    with pytest.raises(NotADirectoryError, match="leases of jobs on this machine, is not a folder: remove it"):
        Lease("a", Ticket(1.0, "a"), 1, 1, tmp_path / "leases")
