"""S18: a job on a pool of machines with ssh, from the call to the first line of all ranks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from estimator_sdk import Estimator
from estimator_sdk.backends.ssh import launch, pool
from estimator_sdk.backends.ssh.session import masters
from tests.ssh import pool as machines

from .. import jobs, peers
from ..harness import FEW, SCRIPTS, Case, Extent, Metric, Panel, Target, Way
from .on_slurm import reading

SCRIPT = SCRIPTS / "line.py"
FLOOR, BY_HAND, HOROVODRUN, OURS = "ssh and mpirun, quickest flags", "rsync and mpirun -H", "horovodrun -H", "fit()"
TARGETS = (Target(OURS, FLOOR, plus=0.3), Target(OURS, HOROVODRUN))
COLD = Panel("from the call to the first line of every rank, without a connection", "machines", "s", TARGETS)
WARM = Panel("from the call to the first line of every rank, with connections that are open", "machines", "s", TARGETS)
MPIRUN = "/usr/bin/mpirun"
"""Debian's, as the machines have it."""
MANY, FEWER_RUNS = 8, 5
"""From so many machines on a run takes seconds, and so many runs of each way must do."""
THERE = "/mnt/home/line.py"
"""Where the peers have the script on a machine: in the home of its user."""
KEPT = "ControlMaster=auto", "ControlPersist=600", "ServerAliveInterval=5"
QUICKEST = ("plm_rsh_no_tree_spawn", "1", "if_base_do_not_resolve", "1", "oob_tcp_if_include", "lo", "pml", "ob1")


@dataclass(frozen=True)
class Client:
    """Somebody who uses the machines by hand."""

    names: tuple[str, ...]
    """Addresses, for nothing here would look up names, and programs wait long for an answer."""
    bin: Path
    """A folder with the `ssh` of this client."""
    sockets: Path
    """The folder of the connections that it leaves open."""

    def run(self, *argv: str, given: Path | None = None) -> str:
        """What a command says whose `ssh` is this client's. Raises RuntimeError."""
        path = f"{self.bin}:/usr/local/bin:/usr/bin:/bin"
        with (given or Path(os.devnull)).open("rb") as stdin:
            done = subprocess.run(
                argv,
                check=False,
                stdin=stdin,
                capture_output=True,
                text=True,
                timeout=jobs.PATIENCE,
                env={**os.environ, "PATH": path},
            )
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        return done.stdout

    def close(self) -> None:
        """Close the connections, so that the next has to make its own."""
        masters.close_in(self.sockets)

    def open(self) -> None:
        """Have one to each machine."""
        on_each(lambda name: self.run("ssh", name, "true"), self.names)


def client(folder: Path, pool_folder: Path, names: tuple[str, ...], keeps: bool) -> Client:
    """One with a program `ssh` of its own, which `keeps` connections open or does not."""
    made = Client(names, folder / "bin", folder / "sockets")
    made.bin.mkdir(parents=True)
    made.sockets.mkdir()
    options = [f"-o {each}" for each in (*KEPT, f"ControlPath={made.sockets}/%C")] if keeps else []
    (made.bin / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {pool_folder}/config {" ".join(options)} "$@"\n')
    (made.bin / "ssh").chmod(0o755)
    return made


def on_each(do: Callable[[str], object], names: Sequence[str]) -> None:
    """At once for all of them, as our own launch does."""
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(do, names))


def slots(names: Sequence[str]) -> str:
    return ",".join(f"{name}:1" for name in names)


def floor(one: Client, is_warm: bool) -> float:
    """The least: a copy by ssh to all machines at once, and mpirun over the same connections."""
    one.open() if is_warm else one.close()
    called = time.time()
    on_each(lambda name: one.run("ssh", name, f"cat > {THERE}", given=SCRIPT), one.names)
    flags = [word for at in range(0, len(QUICKEST), 2) for word in ("-mca", *QUICKEST[at : at + 2])]
    command = [MPIRUN, *jobs.ROOT_FLAGS, "-mca", "plm_rsh_agent", "ssh", *flags, "-H", slots(one.names)]
    said = one.run(*command, "-np", str(len(one.names)), machines.PYTHON, THERE)
    return reading(called, said, time.time(), len(one.names))[0]


def by_hand(one: Client, is_warm: bool) -> float:
    """What people write: a loop with rsync, and mpirun."""
    one.open() if is_warm else one.close()
    called = time.time()
    for name in one.names:
        one.run("rsync", "-a", str(SCRIPT), f"{name}:{THERE}")
    command = [MPIRUN, *jobs.ROOT_FLAGS, "-H", slots(one.names), "-np", str(len(one.names))]
    said = one.run(*command, machines.PYTHON, THERE)
    return reading(called, said, time.time(), len(one.names))[0]


def by_horovodrun(one: Client, is_warm: bool) -> float:
    """Which copies nothing: the script is where it is on this machine, too."""
    on_each(lambda name: one.run("ssh", name, f"cat > {THERE}", given=SCRIPT), one.names)
    one.open() if is_warm else one.close()
    called = time.time()
    # It is told the interface, for the users of the machines may not run the Python with which it looks for one.
    command = [peers.horovodrun(), "--mpi", "--network-interface", "lo", "-H", slots(one.names)]
    command += ["-np", str(len(one.names))]
    said = one.run(*command, machines.PYTHON, THERE)
    return reading(called, said, time.time(), len(one.names))[0]


@contextlib.contextmanager
def own_connections(folder: Path) -> Iterator[None]:
    """Ours are below a folder, so that those of other jobs on this machine are not closed with them."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before


def ours(names: Sequence[str], is_warm: bool, folder: Path) -> float:
    with own_connections(folder):
        return of_fit(names, is_warm)


def of_fit(names: Sequence[str], is_warm: bool) -> float:
    if is_warm:
        with launch.sessions(pool.from_argument(list(names))):
            pass
    else:
        masters.close()
    mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}
    estimator = Estimator(
        entry_point=SCRIPT, hosts=list(names), instance_count=len(names), distribution=mpi, base_job_name="bench"
    )
    job, called, returned, _ = jobs.fit(estimator)
    return reading(called, b"".join(line.data for line in job.logs(stream="stdout")).decode(), returned, len(names))[0]


def cases(extent: Extent) -> Iterator[Case]:
    counts = extent.pick((2, 4, 8, 16), (2, 4))
    before = os.environ["PATH"]
    with jobs.own_home(), machines.pool(max(counts)) as made, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.environ.update(made.environment())
        try:
            for count in counts:
                names = made.names[:count]
                places = tuple(made.addresses[name] for name in names)
                ours(names, True, Path(folder))  # the software is there from now on
                plain = client(Path(folder, f"plain-{count}"), made.folder, places, keeps=False)
                kept = client(Path(folder, f"kept-{count}"), made.folder, places, keeps=True)
                for panel, one in ((COLD, plain), (WARM, kept)):
                    is_warm, few = panel is WARM, FEW if count < MANY else 1
                    ways = (
                        Way(FLOOR, "floor", partial(floor, kept, is_warm)),
                        Way(BY_HAND, "peer", partial(by_hand, one, is_warm), peer="rsync", at_most=FEW),
                        Way(HOROVODRUN, "peer", partial(by_horovodrun, one, is_warm), peer="horovodrun", at_most=few),
                        Way(OURS, "ours", partial(ours, names, is_warm, Path(folder))),
                    )
                    yield Case((panel,), count, ways, min(extent.runs, FEWER_RUNS) if count >= MANY else None)
                kept.close()
        finally:
            with own_connections(Path(folder)):
                masters.close()
            os.environ["PATH"] = before


METRIC = Metric(
    "S18",
    "On a pool of machines with ssh",
    "A script of one line on each of N machines in an MPI world. The machines are those of the tests, on this "
    "one: each is a real sshd with a user of its own, and has our software from a job before. The floor copies "
    "the script by ssh to all at once and calls Debian's `mpirun` with the flags that start it quickest, over the "
    "same connections. The peers are a loop of `rsync` and then `mpirun -H` with the flags that it chooses, and "
    "`horovodrun -H`, which copies nothing and does not look for the network: the script is there before the "
    "clock starts, and it is told the interface. Without a connection each makes its own; with connections that "
    "are open, the peers' `ssh` has a `ControlMaster`, as ours has.",
    cases,
    peers=("ssh", "rsync", "horovodrun"),
)
