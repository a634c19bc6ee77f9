"""The database of the jobs: whole at every moment, whoever writes, and never lost without a word."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder.hold import NotOurs
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_copy
from estimator_sdk.backends.supervised.job_folder.state import FORMAT, State, StillRuns
from estimator_sdk.errors import EstimatorError
from estimator_sdk.values.home import JobFolder

LOST = Verdict("host_lost", "algo-2 is gone", "algo-2", detail="no\n\0word \N{SNOWMAN}", victims=(0, 3))
RUNNING = Record("running", "InProgress", "process", ("algo-1", "algo-2"), 2.5, supervisor=Process(7, "99"))
FAILED = Record(
    "failed",
    "Failed",
    "docker",
    ("algo-1",),
    1.25,
    (AttemptRecord(1, 1.5, 2.0, LOST), AttemptRecord(2, 2.0, 3.0, replace(LOST, host="algo-1"))),
    ended=3.5,
    reason="a file that is no text: \udcff",
    verdict=replace(LOST, host="algo-1"),
    output="file:///\udcfe/failed/output",
    model_data="s3://bucket/failed/output/model.tar.gz",
    supervisor=Process(8, "100"),
)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def state(path) -> State:
    return State(path)


def keep(path: Path, *records: Record) -> None:
    """Put jobs into the database and, as a supervisor does, a copy of each into its folder."""
    for record in records:
        folder = JobFolder(path.with_name("jobs") / record.name)
        folder.path.mkdir(parents=True, exist_ok=True)
        State(path).put(record)
        write_copy(record, folder)


def test_a_job_comes_back_as_it_was_put_and_the_newest_is_first(state):
    state.put(FAILED)
    state.put(RUNNING)
    assert state.get("failed") == FAILED
    assert state.all() == [RUNNING, FAILED]
    assert state.get("fail") is None


def test_put_takes_the_place_of_all_that_was_there_and_add_of_nothing(state):
    state.put(FAILED)
    other = replace(RUNNING, name="failed", supervisor=FAILED.supervisor, attempts=(AttemptRecord(1, 9.0),))
    state.add([other, RUNNING])
    assert state.all() == [RUNNING, FAILED]
    state.put(other)
    assert state.get("failed") == other


def test_only_its_own_supervisor_puts_a_job_and_only_what_is_over_gives_its_name_away(state):
    here, gone = Process.of(os.getpid()), Process(1 << 22, "1")
    mine, next_one = (replace(RUNNING, supervisor=each) for each in (here, gone))
    state.put(mine)
    with pytest.raises(NotOurs, match="the name running belongs to another job"):
        state.put(replace(next_one, status="Completed"))
    with pytest.raises(StillRuns) as refused:
        state.claim(next_one)
    assert refused.value.supervisor == here and state.all() == [mine]
    state.put(replace(mine, status="Stopped"))
    state.claim(next_one)
    with pytest.raises(NotOurs):
        state.put(replace(mine, status="Completed"))
    assert state.all() == [next_one]
    state.claim(mine)  # whose supervisor is gone, has ended too
    assert state.all() == [mine]


def test_only_its_user_can_read_it_and_nothing_lies_beside_it_when_nobody_uses_it(state, path):
    state.put(FAILED)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["state.db"]


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from estimator_sdk.backends.supervised.job_folder.state import State
from tests.unit.sdk.backends.supervised.job_folder.test_state import FAILED, RUNNING
path, number = Path(sys.argv[1]), sys.argv[2]
sys.stdin.read(1)
for round in range(25):
    State(path).put(replace(FAILED, name=f"{number}-{round}"))
    either = [replace(each, name="shared", supervisor=RUNNING.supervisor) for each in (FAILED, RUNNING)]
    State(path).put(either[round % 2])
    shared = State(path).get("shared")
    assert shared in either, shared
"""


def at_once(program: str, path: Path, count: int) -> list[str]:
    """Run it in so many processes, which go on from `sys.stdin.read(1)` together; what each wrote as its errors."""
    argv = [sys.executable, "-c", program, str(path)]
    root = Path(__file__).parents[6]
    started = [
        subprocess.Popen(
            [*argv, str(number)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
        )
        for number in range(count)
    ]
    for process in started:
        process.stdin.write(b"x")
        process.stdin.flush()
    ended = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0] * count, ended
    return [errors.decode() for _, errors in ended]


def test_processes_that_make_and_write_it_at_once_lose_nothing_and_see_no_half(path, state):
    at_once(WRITER, path, 4)
    names = {record.name for record in state.all()}
    assert names == {"shared", *(f"{number}-{round}" for number in range(4) for round in range(25))}
    assert len(state.get("shared").attempts) in (0, 2)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path, state):
    state.put(FAILED)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    before = path.read_bytes()
    for use in (state.all, lambda: State(path).put(RUNNING)):  # by a process that began before, and another
        with pytest.raises(EstimatorError, match=r"state.db, was made by a newer version .* ESTIMATOR_HOME"):
            use()
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["state.db"]


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(1 << 16))


def text(path: Path) -> None:
    path.write_text("this is not a database, although it is long enough to be taken for one\n" * 200)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def one_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096))


def of_something_else(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


def without_a_table(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE attempts")
    db.close()


def a_row(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE jobs SET verdict = '{' WHERE name = 'failed'")
    db.close()


DAMAGES = [garbage, text, empty, half, one_page, of_something_else, without_a_table, a_row]


@pytest.mark.parametrize("is_checked", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_set_aside_with_a_warning_and_made_again(path, damage, is_checked):
    keep(path, FAILED, RUNNING)
    state = State(path)
    if is_checked:
        state.all()
    damage(path)
    Path(f"{path}-wal").write_bytes(b"its log")
    damaged = path.read_bytes()
    with pytest.warns(UserWarning) as warned:
        assert state.all() == [RUNNING, FAILED]
    (sentence,) = {str(each.message) for each in warned}
    (aside,) = (each for each in path.parent.iterdir() if ".damaged-" in each.name and each.suffix[1:].isdigit())
    assert sentence.startswith(f"the database of the jobs, {path}, was damaged: ")
    assert sentence.endswith(f"; it is now {aside}, and its jobs were read again from their folders: 2")
    assert aside.read_bytes() == damaged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert State(path).all() == [RUNNING, FAILED]


def test_its_log_is_set_aside_with_it(path, state):
    keep(path, FAILED)
    path.write_bytes(b"")
    Path(f"{path}-wal").write_bytes(b"its log")
    with pytest.warns(UserWarning, match="it is empty"):
        state.all()
    (log,) = path.parent.glob("state.db.damaged-*-wal")
    assert log.read_bytes() == b"its log"


def test_what_is_lost_with_a_damaged_database_is_named(path, state):
    keep(path, FAILED, RUNNING)
    copy = JobFolder(path.with_name("jobs") / "failed").record
    copy.write_text("{")
    garbage(path)
    with pytest.warns(UserWarning, match=f"from their folders: 1; the record of the job failed cannot .*{copy}"):
        assert state.all() == [RUNNING]


def test_a_job_that_runs_is_whole_again_with_its_next_change(path, state):
    keep(path, RUNNING, FAILED)
    garbage(path)
    later = replace(RUNNING, attempts=(AttemptRecord(1, 3.0),))
    with pytest.warns(UserWarning, match="was damaged"):
        state.put(later)
    assert state.all() == [later, FAILED]


MEETS_DAMAGE = """
import sys
from pathlib import Path
from estimator_sdk.backends.supervised.job_folder.state import State
state = State(Path(sys.argv[1]))
sys.stdin.read(1)
assert [record.name for record in state.all()] == ["running", "failed"]
"""


def test_processes_that_meet_the_damage_at_once_set_it_aside_once(path):
    keep(path, FAILED, RUNNING)
    garbage(path)
    said = at_once(MEETS_DAMAGE, path, 4)
    assert len(list(path.parent.glob("*.damaged-*"))) == 1
    assert sum("was damaged" in each for each in said) == 1


def test_a_database_that_cannot_be_opened_is_not_taken_for_a_damaged_one(path, state):
    path.mkdir()
    with pytest.raises(PermissionError, match="unable to open database file.*state.db"):
        state.all()
    assert path.is_dir()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space"), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 12))


def test_a_full_disk_is_said_and_harms_nothing(small_disk):
    path = small_disk / "state.db"
    fill(small_disk)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device.*state.db") as full:
            State(path).put(FAILED)
        assert full.value.errno == errno.ENOSPC
    assert [each.name for each in small_disk.iterdir()] == ["filler"]
    (small_disk / "filler").unlink()
    State(path).put(FAILED)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left on device.*state.db"):
        State(path).put(RUNNING)
    (small_disk / "filler").unlink()
    assert State(path).all() == [FAILED]
