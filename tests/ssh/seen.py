"""What runs of a job on the machines of the pool, as it is seen from outside of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from estimator_sdk import Job
from tests.ssh.pool import COUNT, UID, SshPool

DATA = ".local/share/estimator-sdk"
TOOLKIT = b"/estimator_container\0train\0"


def pool() -> SshPool:
    """The pool that this process uses."""
    return SshPool(Path(shutil.which("ssh") or "/").parents[1])


def processes(job: Job) -> Iterator[tuple[int, bytes, bytes]]:
    """Each process of a job on any machine, but for the servers of ssh: its words, and its variables."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if not UID <= process.stat().st_uid < UID + COUNT:
                continue
            words, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if job.name.encode() in words + variables:
            yield int(process.name), words, variables


def without_forks(pids: Iterable[int]) -> list[int]:
    """Those that none of the others started: a child that has not become another program yet looks like its parent."""
    found = set(pids)
    return [pid for pid in sorted(found) if _parent(pid) not in found]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def machine_of(pid: int) -> str:
    """The machine on which a process runs, by its user."""
    return f"host-{Path(f'/proc/{pid}').stat().st_uid - UID + 1}"


def toolkits(job: Job) -> dict[str, tuple[int, Path]]:
    """Host -> the process of its toolkit, and where its base directory is, seen from here."""
    found = {}
    running = {pid: variables for pid, words, variables in processes(job) if words.endswith(TOOLKIT)}
    for pid in without_forks(running):
        (base,) = [each for each in running[pid].split(b"\0") if each.startswith(b"SAGEMAKER_BASE_DIR=")]
        place = Path(f"/proc/{pid}/root{base.decode().partition('=')[2]}")
        try:
            config = json.loads((place / "input/config/resourceconfig.json").read_text())
            home = pool().home(machine_of(pid))
        except OSError:
            continue
        found[config["current_host"]] = pid, home / base.decode().partition("/mnt/home/")[2]
    return found


def folder(job: Job) -> Path:
    """The job's folder on the first machine."""
    return pool().home("host-1") / DATA / "jobs" / job.name


def supervisors(job: Job) -> list[int]:
    """The process that supervises a job, if it runs."""
    return without_forks(pid for pid, words, _ in processes(job) if b"/backends/supervised\0" in words)


def supervisor(job: Job) -> int:
    """The same of a job that runs."""
    (found,) = supervisors(job)
    return found


def left_over() -> set[str]:
    """What keepers and toolkits have on the machines beside a job's own folder."""
    used = pool()
    patterns = (f"home/{DATA}/hosts/*", "tmp/est-*", "tmp/ompi*", "tmp/estimator-leases/*")
    return {str(path) for name in used.names for each in patterns for path in (used.folder / name).glob(each)}
