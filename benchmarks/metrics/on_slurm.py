"""S16: a job on Slurm, from the call to the first line of all hosts, and from there until the call returns.

And a restart inside the allocation: from the death of a rank to the first step of all ranks of the next attempt.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from estimator_sdk import Estimator
from tests.slurm import cluster
from tests.waiting import wait_for

from .. import jobs, peers
from ..harness import FEW, SCRIPTS, Case, Extent, Metric, Panel, Target, Way
from . import recovery
from .faults import wait_until_up

SCRIPT = SCRIPTS / "line.py"
RANKS = recovery.RANKS
BARE, OURS = "sbatch and srun", "fit()"
LOOK_SECONDS = 0.02
FIRST = Panel("from the call to the first line of every host", "nodes", "s", (Target(OURS, BARE, plus=0.7),))
RETURN = Panel("from that line until the call returns", "nodes", "s", (Target(OURS, BARE, plus=0.7),))
RESTART = Panel(
    f"a rank of {RANKS} is killed, to the first step of the next attempt",
    "nodes",
    "s",
    (Target(OURS, recovery.BARE, plus=0.5),),
)
_BEGAN = re.compile(r"main (\d+\.\d+)")


def reading(called: float, said: str, returned: float, nodes: int) -> tuple[float, float]:
    """Both panels' figures. Raises RuntimeError where a host has said nothing."""
    began = [float(each) for each in _BEGAN.findall(said)]
    if len(began) != nodes:
        raise RuntimeError(f"not all of {nodes} hosts said when they began:\n{said[-2000:]}")
    return max(began) - called, returned - max(began)


def ours(nodes: int) -> tuple[float, float]:
    estimator = Estimator(entry_point=SCRIPT, instance_type="slurm", instance_count=nodes, base_job_name="bench")
    job, called, returned, _ = jobs.fit(estimator)
    return reading(called, b"".join(line.data for line in job.logs(stream="stdout")).decode(), returned, nodes)


def of_restart(nodes: int, store: Path) -> float:
    """Seconds from the end of a rank until the last rank of the next attempt has taken its first step."""
    checkpoints = store / uuid.uuid4().hex
    job = Estimator(
        entry_point=recovery.SCRIPT,
        instance_type="slurm",
        instance_count=nodes,
        distribution={"mpi": {"enabled": True, "processes_per_host": RANKS // nodes}},
        hyperparameters={"framework": "mpi"},
        checkpoint_s3_uri=f"file://{checkpoints}",
        restart_policy={"on": ["signal"], "max": 1},
        base_job_name="bench",
    ).fit(wait=False)
    wait_until_up(job, RANKS)
    wait_for(lambda: any(checkpoints.glob(".estimator/snapshots/*.json")))  # says that the second attempt is one
    said = b"".join(line.data for line in job.logs(stream="stdout", rank=RANKS - 1)).decode()
    _, _, pid = said.strip().rpartition(" ")
    struck = time.time()
    os.kill(int(pid), signal.SIGKILL)
    job.wait(jobs.PATIENCE)
    return recovery.last_step(b"".join(line.data for line in job.logs(stream="stdout")).decode()) - struck


def by_hand(nodes: int) -> tuple[float, float]:
    """What people write: a batch script with one srun, and a look at the queue again and again."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "said")
        called = time.time()
        options = [f"--nodes={nodes}", "--ntasks-per-node=1", f"--output={output}"]
        wrapped = f"--wrap=srun {sys.executable} {SCRIPT}"
        number = asked("sbatch", "--parsable", *options, wrapped).strip()
        while asked("squeue", "--noheader", f"--jobs={number}"):
            time.sleep(LOOK_SECONDS)
        return reading(called, output.read_text(), time.time(), nodes)


def by_submitit(nodes: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        argv = [str(peers.PEERS_FOLDER / "python"), str(SCRIPTS / "submitit_job.py"), folder, str(nodes)]
        told = json.loads(asked(*argv).splitlines()[-1])
        return told["began"] - told["called"], told["returned"] - told["began"]


def asked(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=jobs.PATIENCE).stdout


def cases(extent: Extent) -> Iterator[Case]:
    with jobs.own_home() as folder, cluster.cluster() as own:
        begun = folder / "begun"
        begun.touch()
        before = os.environ.get("SLURM_CONF")
        os.environ.update(own.environment())
        try:
            for nodes in extent.pick((2, 4), (2,)):
                ways = (
                    Way(BARE, "floor", partial(by_hand, nodes)),
                    Way("submitit", "peer", partial(by_submitit, nodes), peer="submitit", at_most=FEW),
                    Way(OURS, "ours", partial(ours, nodes)),
                )
                yield Case((FIRST, RETURN), nodes, ways)
                again = (
                    Way(recovery.BARE, "floor", partial(recovery.bare, recovery.bare_mpirun(str(begun)))),
                    Way(OURS, "ours", partial(of_restart, nodes, folder)),
                )
                yield Case((RESTART,), nodes, again)
        finally:
            os.environ.pop("SLURM_CONF")
            if before is not None:
                os.environ["SLURM_CONF"] = before


METRIC = Metric(
    "S16",
    "On Slurm",
    "A script of one line on each of N nodes of a real Slurm of twelve nodes on this machine, whose scheduler starts a "
    "job at once. The floor is a batch script with one `srun` of the same script, with a look at the queue every "
    f"{1000 * LOOK_SECONDS:.0f} ms; the peer is submitit, which runs a function that says when it began. The last "
    "panel is of a job with a `restart_policy`, which begins again inside its allocation; its floor is the bare "
    "script, started again by mpirun on one host.",
    cases,
    peers=("submitit",),
)
