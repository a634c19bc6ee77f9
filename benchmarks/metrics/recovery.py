"""S14: from a fault to the first step of the next attempt."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from estimator_container.contract.events import PhaseStarted, RankStarted

from estimator_sdk import Estimator, Job
from tests.chaos.faults import FAULTS, Shape, Target
from tests.chaos.injections import own_folders
from tests.chaos.rounds import strike_when_there
from tests.chaos.running import RunningJob

from .. import harness, jobs
from ..harness import SCRIPTS, Case, Extent, Metric, Panel, Table, Way
from .faults import wait_until_up

SCRIPT = SCRIPTS / "recovering.py"
HOSTS = PROCESSES = 2
RANKS = HOSTS * PROCESSES
BARE, BARE_TORCH = "the bare script, started again", "the bare PyTorch script, started again"
IN_PROCESSES, IN_CONTAINERS = "fit(), in processes", "fit(), in containers"
TORCH, TORCHRUN = "fit() with PyTorch, in containers", "torchrun --max-restarts"
PHASES = ("ranks ended on all hosts", "snapshot in place", "first line", "first step")
_STEP = re.compile(r"step 2 \d+ (\d+\.\d+)")
_took: defaultdict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
"""How long each phase of each fault took, for the table."""


def panel(what: str, in_processes: float, in_containers: float) -> Panel:
    targets = (
        harness.Target(IN_PROCESSES, BARE, plus=in_processes),
        harness.Target(IN_CONTAINERS, BARE, plus=in_containers),
        harness.Target(TORCH, TORCHRUN),
    )
    return Panel(f"{what}, to the first step of the next attempt", "ranks", "s", targets)


PANELS = {
    "kill-rank": panel("a rank is killed", 0.5, 1.0),
    "kill-host": panel("a host is killed", 1.5, 3.0),
    "freeze-host": panel("a host freezes, from when that is known", 1.5, 3.0),
}


def last_step(text: str) -> float:
    """When the last rank of the second attempt took its first step."""
    found = [float(at) for at in _STEP.findall(text)]
    if len(found) != RANKS:
        raise RuntimeError(f"not every rank took a step in the second attempt:\n{text[-2000:]}")
    return max(found)


def bare(command: Sequence[str]) -> float:
    """Seconds from the start of a command that runs the script for the second time until the last first step."""
    started = time.time()
    return last_step(jobs.said(command)) - started


def bare_mpirun(begun: str) -> list[str]:
    script = [sys.executable, str(SCRIPT), "--framework", "mpi", "--begun", begun]
    return [*jobs.quickest_mpirun(RANKS), *script]


def of_job(name: str, fault: str, image: str | None, framework: str, store: Path) -> float:
    """Seconds from a fault, or of a freeze from when it is known, until the last first step of the next attempt."""
    kind = "mpi" if framework == "mpi" else "torch_distributed"
    shape = Shape("docker" if image else "process", HOSTS, PROCESSES)
    job = Estimator(
        entry_point=SCRIPT,
        image_uri=image,
        backend=shape.backend,
        instance_count=HOSTS,
        distribution={kind: {"enabled": True, "processes_per_host": PROCESSES}},
        hyperparameters={"framework": framework},
        checkpoint_s3_uri=f"file://{store}/{uuid.uuid4().hex}",
        max_retry_attempts=1,
        restart_policy={"on": ["signal", "exit_code", "exception"], "max": 1},
        base_job_name="bench",
    ).fit(wait=False)
    wait_until_up(job, RANKS)
    _, struck = strike_when_there(FAULTS[fault], RunningJob(job), Target(shape, RANKS - 1))
    job.wait(jobs.PATIENCE)
    text = b"".join(line.data for line in job.logs(stream="stdout")).decode()
    return note_phases(name, fault, job, struck, last_step(text))


def note_phases(name: str, fault: str, job: Job, struck: float, stepped: float) -> float:
    """Keep how long each phase took; returns what the panel shows."""
    first, second = job.attempts
    assert first.ended is not None
    told = [event for event in jobs.events(job) if event.time > second.began]
    worlds = [event.time for event in told if event.what == PhaseStarted("world")]
    ranks = [event.time for event in told if isinstance(event.what, RankStarted)]
    moments = (struck, first.ended, min(worlds), max(ranks), stepped)
    _took[name, fault].append(tuple(later - earlier for earlier, later in pairwise(moments)))
    return stepped - (first.ended if fault == "freeze-host" else struck)


def torchrun(image: str) -> float:
    """Seconds from the death of a rank under torchrun, in a container, until the last first step of the next world."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    command = ["torchrun", "--standalone", f"--nproc-per-node={RANKS}", "--max-restarts=1", "/script.py"]
    with subprocess.Popen(
        [*in_container(image, name), *command, "--framework", "torch", "--begun", "/tmp/begun"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout is not None
        said, pids, struck = "", dict[int, int](), 0.0
        for line in running.stdout:
            said += line
            words = line.split()
            if words[:1] == ["up"]:
                pids[int(words[1])] = int(words[2])
            if len(pids) == RANKS and not struck:
                struck = time.time()
                kill = f"import os; os.kill({pids[RANKS - 1]}, 9)"  # an image of ours has no `kill`
                subprocess.run(["docker", "exec", name, "python3", "-c", kill], check=True)
    return last_step(said) - struck


def in_container(image: str, name: str) -> list[str]:
    """What runs a command in a container of an image, without the toolkit, with the script."""
    mount = f"{SCRIPT}:/script.py:ro"
    limit = ["timeout", str(int(jobs.PATIENCE))]
    return [*limit, "docker", "run", "--rm", "--init", "--name", name, "-v", mount, "--entrypoint=", image]


def bare_torch(image: str) -> float:
    """The same ranks, started by torchrun for the first time, as if it were the second."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    words = f"torchrun --standalone --nproc-per-node={RANKS} /script.py --framework torch --begun /tmp/begun"
    told = "date +begun\\ %s.%N"
    said = jobs.said([*in_container(image, name), "sh", "-c", f"touch /tmp/begun; {told}; {words}"])
    found = re.search(r"begun (\d+\.\d+)", said)
    assert found is not None
    return last_step(said) - float(found[1])


def cases(extent: Extent) -> Iterator[Case]:
    image, torch = jobs.our_image(), jobs.our_image("pytorch")
    with own_folders(), tempfile.TemporaryDirectory(dir=harness.MEMORY) as folder:
        begun = Path(folder, "begun")
        begun.touch()
        for fault in ("kill-rank",) if extent.quick else PANELS:
            ways = [Way(BARE, "floor", partial(bare, bare_mpirun(str(begun))))]
            for name, chosen in ((IN_PROCESSES, None), (IN_CONTAINERS, image)):
                ways.append(Way(name, "ours", partial(of_job, name, fault, chosen, "mpi", Path(folder))))
            if fault == "kill-rank":
                ways += [
                    Way(BARE_TORCH, "floor", partial(bare_torch, torch), at_most=harness.FEW),
                    Way(TORCHRUN, "peer", partial(torchrun, torch), at_most=harness.FEW),
                    Way(TORCH, "ours", partial(of_job, TORCH, fault, torch, "torch", Path(folder))),
                ]
            yield Case((PANELS[fault],), RANKS, tuple(ways))


def tables() -> Sequence[Table]:
    rows = tuple(
        (name, fault, *(f"{statistics.median(each):.3f}" for each in zip(*taken, strict=True)))
        for (name, fault), taken in _took.items()
    )
    words = "Medians in seconds, one after the other from the fault. A frozen host is known after 2 to 3.5 s."
    return (Table("Where the time goes", ("", "fault", *PHASES), rows, words),)


METRIC = Metric(
    "S14",
    "Recovery",
    "Two hosts with two ranks each. From the fault, which hits the last rank or its host, until the last rank of the "
    "next attempt has taken its first step; where a host freezes, from when that is known. The floor is the bare "
    "script, started again by mpirun on one host, or by torchrun in one container. The peer is torchrun in a container "
    "of the same image, with as many ranks on one host: it starts its ranks again when one is killed.",
    cases,
    tables=tables,
)
