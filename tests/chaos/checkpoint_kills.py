"""Kill what writes, publishes or stores checkpoints, at random moments, and look at what is restored.

    python -m tests.chaos.checkpoint_kills --kills 1000 --store localstack [--in-place] [--seed N]

After each kill a new attempt restores what there is. It must be a state that the folder was in at one moment, every
file of it whole, and no older than the last snapshot that was acknowledged. With `--in-place` it begins with what the
attempt before has left in the folder, some of which is damaged, as on a host that is kept; only a host that was killed
is followed by one with an empty folder. A tally is printed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.contract.agent_events import CheckpointPublished
from estimator_container.contract.event_decoding import decode
from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.ranks.wrapper import FIRST_FD, last_fd
from estimator_container.runtime.links import Link
from estimator_container.runtime.loop import Loop

from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import BUCKET, started
from tests.waiting import SECONDS

from . import writer

KILLS = ("script", "agent", "host", "stale writer")
KILLS_IN_PLACE = ("script", "agent", "host", "restore")
FAULTS = ("cut", "503", "truncate", "stall", "lose the answer")
FINISH_SECONDS = 60.0  # that an agent has for what is left
DAMAGED = 0.2  # of the files that an attempt finds in place
LOG_SECONDS = 0.02  # a log that holds snapshots up for as short as that tries the copy most often


@dataclass
class Tally:
    """What became of the kills."""

    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    snapshots: int = 0
    restored: int = 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        words = Counter(problem.partition(":")[0] for problem in self.problems)
        seen = ", ".join(f"{words[kind]} {kind}" for kind in ("torn", "mixed", "lost"))
        return (
            f"{self.kills.total()} kills ({kinds}); {self.snapshots} snapshots acknowledged; "
            f"{self.restored} restores: {seen}"
        )


class RunningAgent:
    """An agent, and what it says."""

    def __init__(self, loop: Loop, settings: CheckpointSettings) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-S", settings.script, str(theirs.fileno()), json.dumps(sys.path)]
        with theirs:
            self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        self._loop = loop
        self.said: list[list[str]] = []
        self._link = Link(loop, ours, lambda link, message: self.said.append(message), lambda link: None)
        self._link.send("settings", settings.to_json())

    def answer(self, kind: str) -> list[str]:
        """Wait for an answer of a kind; anything else is an error."""
        self._loop.run_until(lambda: bool(self.said), SECONDS)
        if not self.said or self.said[0][0] != kind:
            raise AssertionError(f"the agent said {self.said}, not {kind!r}")
        return self.said.pop(0)[1:]

    def finish(self) -> list[str]:
        self._link.send("finish", str(FINISH_SECONDS))
        return self.answer("finished")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._link.close()

    def close(self) -> None:
        self._link.close()
        self.process.wait(SECONDS)


class Chaos:
    """Attempts at one URI, one after the other, each ended by a kill."""

    def __init__(self, uri: str, folder: Path, seed: int, proxy: FaultProxy | None, in_place: bool = False) -> None:
        self.tally = Tally()
        self._in_place = in_place
        self._uri = uri
        self._root = folder
        self._chance = random.Random(seed)
        self._proxy = proxy
        self._loop = Loop()
        self._acknowledged = ""
        self._number = 0

    def run(self, kills: int) -> Tally:
        without_faults = KILLS_IN_PLACE if self._in_place else KILLS
        kinds = (*without_faults, *FAULTS) if self._proxy else without_faults
        # On a busy machine no script may have come to write before it was killed, and then nothing is proven.
        while self.tally.kills.total() < kills or (not self.tally.snapshots and self.tally.kills.total() < 5 * kills):
            self._attempt(self._chance.choice(kinds))
        self._look(*self._begin())
        return self.tally

    def _attempt(self, kind: str) -> None:
        running, settings = self._begin()
        if kind == "restore":
            time.sleep(self._chance.uniform(0.0, 0.3))
            running.kill()
            self.tally.kills[kind] += 1
            return
        self._look(running, settings)
        folder = Path(settings.folder)
        script = self._start_script(folder, settings.alive)
        try:
            time.sleep(self._chance.uniform(0.0, 0.5))
            running = self._strike(kind, running, script, settings)
        finally:
            script.kill()
            script.wait()
        if running is not None:
            running.finish()
            running.close()
        self.tally.kills[kind] += 1
        for acknowledged in published(Path(settings.frames)):
            self._acknowledged = max(self._acknowledged, acknowledged)
            self.tally.snapshots += 1
        if self._in_place and kind != "host":
            self._damage(folder)
        else:
            shutil.rmtree(folder)

    def _damage(self, folder: Path) -> None:
        """Do to some of the files what a disk or another program may do to them."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if self._chance.random() < DAMAGED:
                self._damage_file(path)

    def _damage_file(self, path: Path) -> None:
        status, data = path.stat(), bytearray(path.read_bytes())
        how = self._chance.choice(["remove", "cut", "change"])
        if how == "remove" or not data:
            path.unlink()
            return
        if how == "cut":
            del data[len(data) // 2 :]
        else:
            data[self._chance.randrange(len(data))] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # so that nothing but its bytes tells

    def _start_script(self, folder: Path, alive: str) -> subprocess.Popen[bytes]:
        """As the wrapper of a rank does: with two files open that tell whether it lives."""
        Path(alive).mkdir()
        first, last = (os.open(f"{alive}/0-{which}", os.O_WRONLY | os.O_CREAT) for which in ("first", "last"))
        try:
            argv = [sys.executable, writer.__file__, str(folder), str(self._chance.random())]
            keep = {first: FIRST_FD, last: last_fd()}
            return subprocess.Popen(argv, preexec_fn=lambda: keep_open(keep), close_fds=False)  # noqa: PLW1509
        finally:
            os.close(first)
            os.close(last)

    def _begin(self) -> tuple[RunningAgent, CheckpointSettings]:
        self._number += 1
        place = self._root / str(self._number)
        folder = self._root / "kept" if self._in_place else place
        at_hand = folder.exists()
        folder.mkdir(exist_ok=True)
        settings = CheckpointSettings(
            self._uri,
            str(folder),
            (),
            f"{place}.alive",
            f"{place}.frames",
            f"attempt-{self._number}",
            True,
            at_hand,
            log_seconds=LOG_SECONDS,
        )
        return RunningAgent(self._loop, settings), settings

    def _look(self, running: RunningAgent, settings: CheckpointSettings) -> None:
        """Hold what was restored against what was acknowledged."""
        base, *_ = running.answer("restored")
        self.tally.restored += 1
        self.tally.problems += [f"{problem} (in {base})" for problem in writer.problems(Path(settings.folder))]
        if self._acknowledged and base < self._acknowledged:
            self.tally.problems.append(f"lost: {base} was restored, and {self._acknowledged} was acknowledged")

    def _strike(
        self, kind: str, running: RunningAgent, script: subprocess.Popen[bytes], settings: CheckpointSettings
    ) -> RunningAgent | None:
        """Kill something. Returns the agent that is to finish, if one is left."""
        if kind == "script":
            script.kill()
        elif kind == "agent":
            running.kill()
            running = RunningAgent(self._loop, CheckpointSettings(**{**settings.__dict__, "restore": False}))
            running.answer("restored")
            time.sleep(self._chance.uniform(0.0, 0.2))
        elif kind == "host":
            script.kill()
            running.kill()
            return None
        elif kind == "stale writer":
            self._overtake(running)
            return None
        else:
            self._disturb_the_store(kind)
        return running

    def _overtake(self, stale: RunningAgent) -> None:
        """A new attempt begins while the one before still runs, and must not be disturbed by it."""
        newer, settings = self._begin()
        self._look(newer, settings)
        time.sleep(self._chance.uniform(0.0, 0.2))
        # Only what was acknowledged before the newer one had begun counts, and the newer one saw that.
        before = self._acknowledged
        folder = Path(settings.folder)
        with writer.open_log(folder) as log:
            step = writer.newest_step(folder)
            for generation in (max(1, step), step + 1):  # the first again: it may not have come to its end
                writer.write_generation(folder, generation, self._chance, log)
        newer.finish()
        newer.close()
        for acknowledged in published(Path(settings.frames)):
            self._acknowledged = max(before, acknowledged)
        stale.kill()

    def _disturb_the_store(self, fault: str) -> None:
        assert self._proxy is not None
        share = self._chance.choice([0.2, 0.5, 1.0])
        chance = random.Random(self._chance.random())
        self._proxy.choose = lambda request: fault if chance.random() < share else None  # type: ignore[assignment,return-value]
        time.sleep(self._chance.uniform(0.05, 0.5))
        self._proxy.choose = lambda request: None
        self._proxy.release()


def keep_open(descriptors: dict[int, int]) -> None:
    """In the child: put each descriptor under its number, and close all others."""
    for fd, number in descriptors.items():
        os.dup2(fd, number + 1000)
    os.closerange(3, 1000)
    for number in descriptors.values():
        os.dup2(number + 1000, number)
        os.close(number + 1000)


def published(frames: Path) -> list[str]:
    """The snapshots that the agents of an attempt acknowledged."""
    parser = FrameParser()
    found = [*parser.feed(frames.read_bytes()), *parser.finish()] if frames.exists() else []
    events = (decode(frame.data) for frame in found if frame.stream == EVENT)
    return [event.snapshot for event in events if isinstance(event, CheckpointPublished)]


@contextlib.contextmanager
def store(kind: str, folder: Path) -> Iterator[tuple[str, FaultProxy | None]]:
    """A place of one's own, behind a proxy where the store is a server; the environment says how to reach it.

    The server, in `folder`, is one of its own unless test processes share one.
    """
    if kind == "file":
        yield f"file://{folder}/store", None
        return
    with started(kind, lambda name: folder / "server") as server:
        proxy = FaultProxy(server.endpoint)
        os.environ.update({**server.environment(), "AWS_ENDPOINT_URL_S3": proxy.endpoint})
        try:
            yield f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy
        finally:
            proxy.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--store", choices=["file", "localstack"], default="localstack")
    parser.add_argument("--in-place", action="store_true", help="keep the folder from one attempt to the next")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server").mkdir()
        with store(settings.store, folder) as (uri, proxy):
            started = time.monotonic()
            tally = Chaos(uri, folder, settings.seed, proxy, settings.in_place).run(settings.kills)
            print(f"store {settings.store}, seed {settings.seed}, {time.monotonic() - started:.0f} s")
            print(tally)
            for problem in tally.problems:
                print(f"  {problem}")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
