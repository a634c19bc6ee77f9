"""What a job has left: processes, containers, networks, mounts, cgroups, shared memory, temporary files.

Other jobs may run beside it, so what is counted is what carries its name, or is new and belongs to nothing that lives.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.ssh import seen

from .running import JOB_LABEL, engine

SHARED_MEMORY = Path("/dev/shm")
TEMPORARY = Path("/tmp")
ENGINE_FOLDERS = ("/var/lib/docker/", "/run/docker/", "/var/run/docker/")
LOOK_SECONDS = 0.05  # between looks; nothing tells of an end that is late
NEIGHBOURS_SECONDS = 300.0
"""How long that may stay which carries no name and lies where others have theirs, too: it may be of a job beside this
one."""
_OF_PROCESS = re.compile(r"est-(\d+)-")


class Scan:
    """Made before a job starts, and asked when it has ended."""

    def __init__(self, with_engine: bool, on_pool: bool = False) -> None:
        """`with_engine` and `on_pool` say where else jobs leave something."""
        self._with_engine = with_engine
        self._on_pool = on_pool
        own = Path(tempfile.gettempdir())
        self._own = own if own != TEMPORARY else None
        self._before = self._places()

    def left(self, name: str, patience: float) -> list[str]:
        """What is still there of the job of that name `patience` seconds from now; returns as soon as nothing is."""
        began = time.monotonic()
        nobodys = self._nobodys()
        while found := self._named(name) + sorted(nobodys):
            # In a folder for temporary files of this process alone, what carries no name is the job's as well.
            its_own = any(each not in nobodys or Path(each).parent == self._own for each in found)
            if time.monotonic() >= began + (patience if its_own else NEIGHBOURS_SECONDS):
                break
            threading.Event().wait(LOOK_SECONDS)
            nobodys &= self._nobodys()  # what appears later is of a job beside this one, which has ended
        return found

    def _named(self, name: str) -> list[str]:
        found = [f"process {each}" for each in processes_of(name)]
        return found + on_engine(name) if self._with_engine else found

    def _nobodys(self) -> set[str]:
        new = self._places() - self._before
        if not new:
            return new
        alive = living_text() + (engine_text() if self._with_engine else "")
        return {each for each in new if Path(each).name.encode() not in alive.encode() and not self._is_in_use(each)}

    def _is_in_use(self, place: str) -> bool:
        """Whether it is of a process beside this one that lives, such as one that builds an image."""
        named = _OF_PROCESS.match(Path(place).name)
        beside = named is not None and int(named[1]) != os.getpid() and Path(place).parent != self._own
        return beside and Path(f"/proc/{named[1]}").exists()

    def _places(self) -> set[str]:
        """The paths of what nobody's name is on."""
        if self._on_pool:
            return seen.left_over()  # nothing of the hosts is on this machine
        places = {str(path) for folder in (SHARED_MEMORY, TEMPORARY) for path in folder.glob("est-*")}
        places |= {str(path) for path in TEMPORARY.glob("ompi*")}
        if self._own is not None:
            places |= {str(path) for path in self._own.iterdir()}
        if self._with_engine:
            places |= set(_cgroups()) | set(_mounts())
        return places


def processes_of(word: str) -> list[str]:
    """The processes of this machine that have a word in their command or environment, but this one."""
    found = []
    for pid, text, state in _processes():
        if word.encode() in text and state not in (b"Z", b"X") and pid != os.getpid():
            found.append(f"{pid} {text.partition(b'=')[0][:200]!r}")
    return found


def on_engine(name: str) -> list[str]:
    """The containers and networks that carry a job's label."""
    client = engine()
    chosen = {"label": f"{JOB_LABEL}={name}"}
    containers = client.containers.list(all=True, filters=chosen, ignore_removed=True)
    return [
        f"{type(each).__name__.lower()} {each.name}" for each in (*containers, *client.networks.list(filters=chosen))
    ]


def living_text() -> str:
    """The commands and environments of all processes."""
    return b"\n".join(text for _, text, _ in _processes()).decode("utf-8", "replace")


def engine_text() -> str:
    """What the engine says of its containers: their ids, and where their mounts are."""
    import docker

    client = engine()
    words = []
    for each in client.api.containers(all=True):
        with contextlib.suppress(docker.errors.NotFound):
            shown: dict[str, Any] = client.api.inspect_container(each["Id"])
            merged = str((shown["GraphDriver"]["Data"] or {}).get("MergedDir", ""))
            words += [shown["Id"], Path(merged).parent.name, Path(shown["NetworkSettings"]["SandboxKey"]).name]
    return "\n".join(words)


def _processes() -> Iterator[tuple[int, bytes, bytes]]:
    """Pid, command and environment, and state of each process."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        yield int(process.name), text, state


def _cgroups() -> Iterable[str]:
    """Of containers: a folder for each, named by its id."""
    root = Path("/sys/fs/cgroup")
    for path in (*root.glob("memory/docker/*"), *root.glob("docker/*"), *root.glob("system.slice/docker-*")):
        if path.is_dir():
            yield str(path)


def _mounts() -> Iterable[str]:
    """The mounts of containers that this namespace sees, by the folder that has their id in its name."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split()[4]
        if place.startswith(ENGINE_FOLDERS) and place.count("/") > 4:
            yield place.removesuffix("/merged").removesuffix("/mounts/shm")
