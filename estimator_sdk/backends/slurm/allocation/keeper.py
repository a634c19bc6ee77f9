"""The step that keeps the channels of a job on its node's own disk: `keeper.py FOLDER SEARCH_PATH HOSTS`.

HOSTS are those of the node, with commas between them; a node that is spare has none. It says on its standard output, in
lines of JSON, where it puts them and whether they are there. When its standard input ends, it removes all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)  # hosts may read until they end
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.slurm.files import SlurmFolder
from estimator_sdk.backends.supervised.agents.channels import Channels
from estimator_sdk.plan.plan import Plan
from estimator_sdk.values.home import JobFolder

AT, READY, FAILED = "at", "ready", "failed"
"""What it says, each with a text: where the channels are, that all are there, or why they are not."""


class NodeFolder(JobFolder):
    """The folder of a job as a node sees it that has the channels on a disk of its own."""

    disk: Path

    @classmethod
    def with_disk(cls, path: Path, disk: Path) -> NodeFolder:
        """The folder of a job, and where its channels are."""
        made = cls(path)
        made.disk = disk
        return made

    def channel(self, name: str) -> Path:
        return JobFolder(self.disk).channel(name)


class NoScratch(Exception):
    """The node has no such folder, as the text says."""


def main(path: str, own: tuple[str, ...]) -> None:
    """Keep the channels of the job in a folder for these hosts of it."""
    os.umask(0o077)
    given = json.loads(SlurmFolder(Path(path)).given.read_text(encoding="utf-8"))
    plan = Plan.from_json(given["plan"])
    os.environ.update(given["variables"])  # for what reads stores
    try:
        disk = made(plan.local_scratch or "", plan.job_name)
    except NoScratch as reason:
        _say(FAILED, str(reason))
        return
    try:
        _say(AT, str(disk))
        _keep(plan, NodeFolder.with_disk(Path(path), disk), own)
    finally:
        shutil.rmtree(disk, ignore_errors=True)


def made(scratch: str, job_name: str) -> Path:
    """A new folder for this user alone in the one that is meant. Raises NoScratch."""
    where, node = f"slurm['local_scratch'] is {scratch!r}", os.environ.get("SLURMD_NODENAME", "this node")
    folder = scratch if scratch.startswith("/") else os.environ.get(scratch, "")
    if not folder.startswith("/"):
        what = f"{where}, a variable that names no folder on {node}"
        raise NoScratch(f"{what}; name one that the site sets, or a folder of the nodes' own disks")
    try:
        return Path(tempfile.mkdtemp(prefix=f"{job_name}-", dir=folder))
    except OSError as error:
        what = f"{where}, but no folder can be made in {folder} on {node}: {error.strerror}"
        raise NoScratch(f"{what}; name one that you can write to on each node") from None


def _keep(plan: Plan, folder: NodeFolder, own: tuple[str, ...]) -> None:
    loop = Loop()
    channels = Channels(plan, folder, loop, Children(loop), lambda reason: None, own)
    is_over = False

    def hear() -> None:
        nonlocal is_over
        if not os.read(sys.stdin.fileno(), 1 << 10):
            loop.forget(sys.stdin.fileno())
            is_over = True

    loop.on_readable(sys.stdin.fileno(), hear)
    try:
        channels.start()
        failed = channels.wait(lambda: is_over)
        if not is_over:
            _say(READY if failed is None else FAILED, failed or "")
        loop.run_until(lambda: is_over)
    finally:
        channels.end()


def _say(kind: str, text: str) -> None:
    with suppress(OSError):  # nobody hears any more
        print(json.dumps([kind, text]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], tuple(filter(None, sys.argv[3].split(","))))
