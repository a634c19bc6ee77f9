"""What each test costs in CPU time, with all the processes that it starts, however they are detached from it.

    pytest --cpu FILE …            # as root; with or without workers
    python -m tests.cpu FILE       # what costs most, by file and by test

Each test process puts itself into a control group of its own, which all that it starts inherits, and reads what the
kernel has counted there before and after each test. Jobs on servers that test processes share are not in it. Containers
have groups of the engine: what those of the whole machine used meanwhile is shown by itself, and is the test's own if
nothing else runs containers.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

CGROUPS = Path("/sys/fs/cgroup")
MOST = 40
"""How many tests a table shows."""


class Group:
    """A control group of version 1 or 2 that counts the CPU time of this process and of all that it starts from now."""

    def __init__(self) -> None:
        is_first = (CGROUPS / "cpuacct").is_dir()
        root = CGROUPS / "cpuacct" if is_first else CGROUPS
        self._folder = root / f"tests-{os.getpid()}"
        self._containers = root / "docker"
        self._folder.mkdir(exist_ok=True)  # one that was left by a process of the same number is as good
        (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    def seconds(self) -> float:
        """What has been used so far."""
        return _seconds(self._folder)

    def seconds_of_containers(self) -> float:
        """The same of all containers of the machine, those included that are gone."""
        return _seconds(self._containers) if self._containers.is_dir() else 0.0

    def close(self) -> None:
        """Give the processes back, so that the group can go; one that will not go stays, and is empty."""
        root = self._folder.parent / "cgroup.procs"
        for pid in (self._folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                root.write_text(pid)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _seconds(folder: Path) -> float:
    if (usage := folder / "cpuacct.usage").exists():
        return int(usage.read_text()) / 1e9
    said = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    return int(said["usage_usec"]) / 1e6


class Meter:
    """Adds a line to a file for each test: its CPU time, its time, and what containers used meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._group = Group()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[object]:
        with self._measured("(collecting)"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        with self._measured(item.nodeid):
            return (yield)

    def pytest_unconfigure(self) -> None:
        self._group.close()

    @contextlib.contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        cpu, containers, began = self._group.seconds(), self._group.seconds_of_containers(), time.monotonic()
        yield
        used = [self._group.seconds() - cpu, time.monotonic() - began, self._group.seconds_of_containers() - containers]
        with self._path.open("a") as file:
            file.write(f"{json.dumps([name, *(round(each, 3) for each in used)])}\n")


def main(path: str, depth: str = "") -> int:
    """Print both tables; with a depth, folders of so many levels rather than files."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    by_file, by_test, seconds, of_containers, counts = Counter(), Counter(), Counter(), Counter(), Counter()
    for name, cpu, wall, containers in lines:
        file = name.partition("::")[0]
        place = "/".join(file.split("/")[: int(depth)]) if depth else file
        by_file[place] += cpu
        of_containers[place] += containers
        seconds[place] += wall
        counts[place] += 1
        by_test[name] += cpu
    print(f"{by_file.total():.1f} s of CPU in {seconds.total():.1f} s, {len(lines)} tests\n")
    print("     CPU  containers     time  tests")
    for place, cpu in by_file.most_common(None if depth else MOST):
        print(f"{cpu:8.1f}  {of_containers[place]:10.1f} {seconds[place]:8.1f}  {counts[place]:5}  {place}")
    print()
    for name, cpu in by_test.most_common(MOST):
        print(f"{cpu:8.1f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
