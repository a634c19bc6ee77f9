"""What a session runs on a machine first."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from estimator_sdk.backends.ssh.session import boot, software
from estimator_sdk.backends.ssh.session.connection import Deliveries, Purpose
from tests.waiting import wait_for

KEEPER = b"/ssh/on_host\0"
RUN = "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"


class Machine:
    """A machine that is asked, which is this one with a cache of its own."""

    def __init__(self, cache, **purpose):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "XDG_CACHE_HOME": str(cache), "ESTIMATOR_HOME": str(cache / "home")},
        )
        program = software.BOOT.read_bytes()
        self._process.stdin.write(b"%d\n" % len(program) + program)
        self.first = self.ask({**Purpose(**purpose)._asdict(), "digest": software.digest(), "stores": ""})

    def ask(self, facts, data=b""):
        self._process.stdin.write(json.dumps(facts).encode() + b"\n" + data)
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()


@pytest.fixture
def machine(tmp_path):
    started = []

    def start(**purpose):
        started.append(Machine(tmp_path, **purpose))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_of_two_machines_that_share_a_cache_the_second_finds_what_the_first_was_given(machine):
    first, second = machine(), machine()
    assert first.first["needs"] and second.first["needs"]
    assert first.first["place"] == second.first["place"] != ""
    archive = software.archive()
    assert first.ask({"size": len(archive)}, archive) == {}
    assert second.ask({"size": 0})["needs"] is False
    assert second.ask({"operation": "reach", "places": [], "size": 0}) == {"refused": []}
    assert machine().first == {"needs": False, "has_code": False, "place": ""}


def test_software_that_cannot_be_unpacked_leaves_nothing(machine, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("a", "a/b"):  # a file where a folder is to be
            archive.addfile(tarfile.TarInfo(name))
    answer = machine().ask({"size": len(packed.getvalue())}, packed.getvalue())
    above = tmp_path / "estimator-sdk" / "software"
    assert re.fullmatch(f"the software cannot be written to {above}/.*: .*; make room there", answer["error"])
    assert [path.name for path in above.iterdir()] == [".place"]


def test_a_machine_says_whether_it_has_the_code(machine, tmp_path):
    (tmp_path / "estimator-sdk" / "code").mkdir(parents=True)
    (tmp_path / "estimator-sdk" / "code" / "code.tar.gz").touch()
    assert machine(code="code.tar.gz").first["has_code"] is True
    assert machine(code="other.tar.gz").first["has_code"] is False


def test_a_keeper_that_is_told_nothing_leaves_nothing(machine, tmp_path):
    first = machine()
    archive = software.archive()
    first.ask({"size": len(archive)}, archive)
    keeping = machine(keeper="job.1")
    (channel := tmp_path / "home" / "hosts" / "job.1" / "channels" / "train").mkdir(parents=True, mode=0o700)
    (channel / "data").touch()
    assert keeping.ask({"operation": "reach", "places": [], "size": 0}) == {"refused": []}
    assert keeping.close() == 0
    # Its log is removed last, and made only once it has loaded all that it needs.
    hosts = tmp_path / "home" / "hosts"
    wait_for(lambda: not keepers(tmp_path) and not list(hosts.iterdir()))


def keepers(cache):
    words = str(cache).encode()
    return [each for each in Path("/proc").glob("[0-9]*") if words in (command := words_of(each)) and KEEPER in command]


def words_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_folder_says_the_same_to_all_who_look_at_it_and_others_say_something_else(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = boot.place_of(str(tmp_path / "a"))
    assert boot.place_of(str(tmp_path / "a")) == first != boot.place_of(str(tmp_path / "b"))
    assert [path.name for path in (tmp_path / "a").iterdir()] == [".place"]


def test_only_the_first_delivery_to_a_place_is_made():
    deliveries = Deliveries()
    assert [deliveries.is_made(place) for place in ("a", "b", "a")] == [False, False, True]
    assert deliveries.turn("a") is deliveries.turn("a") is not deliveries.turn("b")
