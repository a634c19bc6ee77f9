"""What has a host on an executor's machine, started as a task of Spark does it, with a supervisor that says nothing."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_sdk.backends.spark import launcher
from estimator_sdk.backends.spark.stage import Stage
from estimator_sdk.backends.ssh.session import software
from tests.waiting import SECONDS

PROGRAM = Path(launcher.__file__).read_text()


class Host:
    """One on this machine."""

    def __init__(self, folder, number, door, executor):
        self.own = folder / f"own-{number}"
        self.packed = software.archive()
        keeper = {
            "name": f"machine-{number}",
            "secret": "00" * 32,
            "supervisor": f"127.0.0.1:{door.getsockname()[1]}",
            "common": str(folder / "common"),
            "address": "127.0.0.1",
        }
        given = {"own": str(self.own), "executor": executor.pid, "size": len(self.packed), "keeper": keeper}
        self.told = json.dumps(given).encode() + b"\n"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def prepare(self):
        self.process.stdin.write(self.told + self.packed)
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def begin(self):
        assert self.prepare() == launcher.READY
        self.process.stdin.write(launcher.BEGIN + b"\n")
        self.process.stdin.flush()
        return self

    def lose_its_task(self):
        self.process.stdin.close()


@pytest.fixture
def executor():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def door():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def host(tmp_path, door, executor):
    started = []

    def start(number=1):
        started.append(Host(tmp_path, number, door, executor))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.process.stdin.close()
        each.process.stdout.close()


def test_the_last_host_of_a_machine_leaves_nothing_when_its_executor_is_gone(tmp_path, host, executor):
    one, other = host(1).begin(), host(2).begin()
    assert (tmp_path / "common" / "software" / "estimator_sdk").is_dir()
    executor.kill()
    executor.wait()
    one.lose_its_task()
    one.process.wait(SECONDS)
    assert not one.own.exists() and other.own.exists()
    assert (tmp_path / "common" / "software" / "estimator_sdk").is_dir()
    other.lose_its_task()
    other.process.wait(SECONDS)
    assert list(tmp_path.iterdir()) == []


def test_a_host_whose_task_alone_has_ended_goes_on_until_the_driver_may_have_stopped_it(tmp_path, host, executor):
    one = host().begin()
    one.lose_its_task()
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(2)
    executor.kill()
    executor.wait()
    one.process.wait(SECONDS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("of_all", [0, -3, None])
def test_a_task_that_ends_before_it_has_said_everything_has_made_nothing(tmp_path, host, of_all):
    one = host()
    one.process.stdin.write(one.told[:of_all])
    one.lose_its_task()
    assert one.process.wait(SECONDS) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_has_no_room_says_so_and_leaves_nothing(tmp_path, host):
    one = host()
    one.own.touch()
    assert one.prepare() == f"{one.own}: File exists\n".encode()
    assert one.process.wait(SECONDS) == 1
    assert not (tmp_path / "common").exists()


def test_a_host_says_which_folder_it_cannot_have(tmp_path, host):
    (tmp_path / "common").write_text("in its place")
    assert host().prepare() == f"{tmp_path}/common: Not a directory\n".encode()
    (tmp_path / "common").unlink()
    (tmp_path / "common").mkdir()
    (tmp_path / "common").chmod(0o755)
    assert host(2).prepare() == f"{tmp_path}/common: it is not this user's alone\n".encode()


def test_another_folder_is_only_advised_where_there_can_be_one():
    stage = Stage.__new__(Stage)
    stage._mark, words = "mark", "no room: 10.0.0.1:4000: {}: No space left on device"
    fixed, own = (stage._failed([words.format(folder)]) for folder in ("/tmp/est-mark", "/tmp/est-mark-1"))
    assert fixed == (
        "an executor cannot have a host, 10.0.0.1:4000: /tmp/est-mark: No space left on device; make room there"
    )
    assert own.endswith("make room there, or give executors another folder with spark.executorEnv.TMPDIR")


def test_a_task_that_ends_before_the_host_is_to_begin_leaves_nothing(tmp_path, host):
    one = host()
    assert one.prepare() == launcher.READY
    one.lose_its_task()
    assert one.process.wait(SECONDS) == 0
    assert list(tmp_path.iterdir()) == []
