"""Run small jobs side by side for a while, stop and hurt some, and see that nothing grows.

    python -m tests.chaos.soak --minutes 30 --at-once 4 --backend process|docker|both [--seed S]

Each job completes, is stopped, loses its client or loses a rank, at random moments; its state must be the right one.
From time to time all have ended: then nothing of them may be left on the machine, and this process may hold no more
descriptors and threads, nor a job more of the disk, than before. Ends with 1 if anything is not so.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path

from estimator_sdk import Job, JobFailed
from tests.waiting import SECONDS

from .faults import FAULTS, Shape, Target
from .jobs import estimator
from .leaks import Scan
from .playing import image_for, own_folders
from .rounds import MOMENTS, judge, strike_when_there
from .running import RunningJob

EVENTS = ("complete", "complete", "stop", "kill the client", "kill a rank")
LONG = 3 * SECONDS  # seconds: a job that is to be ended would go on that long
PATIENCE = SECONDS  # seconds for any end, with other jobs beside it
LEFT_SECONDS = SECONDS
JOBS_BETWEEN_LOOKS = 3  # by each thread
WARM_UP = 2  # looks before things count: pools fill, modules are imported


@dataclass(frozen=True)
class Look:
    """What there is at a moment when no job runs."""

    descriptors: int
    threads: int
    resident_kib: int
    disk_kib_per_job: int


@dataclass
class Tally:
    """What the soak has seen."""

    events: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    def growth(self) -> list[str]:
        """What is always more in the last third of the looks than it ever was in the first."""
        looks = self.looks[WARM_UP:]
        third = len(looks) // 3
        if third < 1:
            return []
        found = []
        for each in fields(Look):
            values = [getattr(look, each.name) for look in looks]
            slack = 0.1 if each.name.endswith(("kib", "kib_per_job")) else 0.0
            if min(values[-third:]) > max(values[:third]) * (1 + slack):
                found.append(f"{each.name} grew from {max(values[:third])} to {min(values[-third:])} and more")
        return found

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        lines = [f"{self.events.total()} jobs ({kinds}); {len(self.looks)} looks at a quiet machine"]
        for each in fields(Look):
            values = [getattr(look, each.name) for look in self.looks]
            if values:
                middle = statistics.median(values)
                lines.append(f"  {each.name:16} first {values[0]}, median {middle:g}, last {values[-1]}")
        return "\n".join([*lines, *(f"  problem: {each}" for each in self.problems)])


class Soak:
    """Jobs in several threads, until a time."""

    def __init__(self, home: Path, images: dict[str, str | None], at_once: int, seed: int) -> None:
        self.tally = Tally()
        self._home = home
        self._images = images
        self._at_once = at_once
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._names: list[str] = []

    def run(self, seconds: float) -> Tally:
        deadline = time.monotonic() + seconds
        with ThreadPoolExecutor(self._at_once) as pool:
            while time.monotonic() < deadline:
                scan = Scan(with_engine="docker" in self._images)
                seeds = [self._chance.random() for _ in range(self._at_once)]
                list(pool.map(self._several, seeds))
                self._look(scan)
        self.tally.problems += self.tally.growth()
        return self.tally

    def _several(self, seed: float) -> None:
        chance = random.Random(seed)
        for _ in range(JOBS_BETWEEN_LOOKS):
            event = chance.choice(EVENTS)
            backend = chance.choice(sorted(self._images))
            shape = Shape(backend, chance.choice([1, 2]), chance.choice([1, 2]))
            try:
                problem = self._one(event, shape, chance)
            except Exception as error:  # whatever goes wrong is what is looked for
                problem = f"{type(error).__name__}: {error}"
            with self._lock:
                self.tally.events[event] += 1
                if problem:
                    self.tally.problems.append(f"{event}, {backend} {shape.hosts} x {shape.processes}: {problem}")

    def _one(self, event: str, shape: Shape, chance: random.Random) -> str:
        """One job to its end. Returns what is wrong with that end; "" when nothing is."""
        moment = chance.uniform(0.0, MOMENTS[shape.backend])
        image = self._images[shape.backend]
        if event == "kill the client":
            return self._without_client(shape, image, moment)
        seconds = moment if event == "complete" else LONG
        job = self._known(estimator(shape, image, {"seconds": seconds}).fit(wait=False))
        if event == "complete":
            return _expect(job, "Completed")
        threading.Event().wait(moment)
        if event == "stop":
            job.stop()
            return _expect(job, "Stopped")
        target = Target(shape, chance.choice(shape.ranks))
        truth, _ = strike_when_there(FAULTS["kill-rank"], RunningJob(job), target)
        try:
            return f"it is {job.wait(PATIENCE)} after a rank was killed"
        except JobFailed as failed:
            return "" if judge(truth, failed.verdict) == "correct" else f"{failed}, and the truth is {truth}"

    def _without_client(self, shape: Shape, image: str | None, moment: float) -> str:
        argv = [sys.executable, "-m", "tests.chaos.client", shape.backend, image or ""]
        argv += [str(shape.hosts), str(shape.processes), str(moment)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            name = client.stdout.readline().strip()
            threading.Event().wait(moment)
            client.kill()
        return _expect(self._known(Job.attach(name)), "Completed")

    def _known(self, job: Job) -> Job:
        with self._lock:
            self._names.append(job.name)
        return job

    def _look(self, scan: Scan) -> None:
        names, self._names = self._names, []
        left = [f"{name} left {each}" for name in names for each in scan.left(name, LEFT_SECONDS)]
        self.tally.problems += dict.fromkeys(left)
        gc.collect()
        jobs = self.tally.events.total()
        disk = _disk_usage(str(self._home)) // 1024
        memory = Path("/proc/self/statm").read_text().split()[1]
        self.tally.looks.append(
            Look(
                descriptors=len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - not of the folder itself
                threads=threading.active_count(),
                resident_kib=int(memory) * os.sysconf("SC_PAGE_SIZE") // 1024,
                disk_kib_per_job=disk // jobs,
            )
        )


def _disk_usage(folder: str) -> int:
    """Bytes of all below a folder, counted without keeping their names: they would be most of this process's memory."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            total += entry.stat(follow_symlinks=False).st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                total += _disk_usage(entry.path)
    return total


def _expect(job: Job, status: str) -> str:
    try:
        found = job.wait(PATIENCE)
    except JobFailed as failed:
        return f"it should be {status}: {failed}"
    return "" if found == status else f"it is {found} and should be {status}"


def soak(images: dict[str, str | None], seconds: float, at_once: int, seed: int) -> Tally:
    """Run jobs on the backends that have an image, or need none, for a time."""
    with own_folders() as home:
        return Soak(home, images, at_once, seed).run(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--at-once", type=int, default=4, help="jobs that run side by side")
    parser.add_argument("--backend", choices=["process", "docker", "both"], default="process")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--image", help="run containers of this image, made of one of ours, and build none")
    settings = parser.parse_args()
    backends = ["process", "docker"] if settings.backend == "both" else [settings.backend]
    started = time.monotonic()
    images = {each: settings.image or image_for(each) if each == "docker" else None for each in backends}
    tally = soak(images, settings.minutes * 60, settings.at_once, settings.seed)
    print(f"backend {settings.backend}, {settings.at_once} at once, seed {settings.seed}")
    print(f"{tally}\n{time.monotonic() - started:.0f} s")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
