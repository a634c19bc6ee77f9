"""S14: from a fault to the first step of the next attempt."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from estimator_container.contract.agent_events import CheckpointRestored
from estimator_container.contract.events import RankEnded

from estimator_sdk import Estimator, Job
from tests.chaos.faults import Shape, Target
from tests.chaos.playing import own_folders
from tests.chaos.rounds import strike_when_there
from tests.chaos.running import RunningJob

from .. import enduring, harness, jobs, torchrun
from ..enduring import STRIKES
from ..harness import SCRIPTS, Case, Extent, Metric, Panel, Table, Way
from ..torchrun import HOSTS, PROCESSES
from .faults import wait_until_up

SCRIPT = SCRIPTS / "recovering.py"
RANKS = HOSTS * PROCESSES
BARE, BARE_TORCH = "the bare script, started again", "the bare PyTorch script, started again"
IN_PROCESSES, IN_CONTAINERS = "fit(), in processes", "fit(), in containers"
TORCH, TORCHRUN = "fit() with PyTorch, in containers", "torchrun --max-restarts"
PHASES = ("noticed", "ranks ended on all hosts", "snapshot in place", "first line", "imported", "first step")
MINUTES = 20  # of a job under random faults
CLASSES_AT_A_TIME = 2  # of these jobs, with torchrun beside each
HANG_SECONDS = 5.0  # that a world may stand still
ONCE_KNOWN = ("freeze-host", "hang-rank")
"""Of these the time counts from the end of the attempt: how long they go unnoticed is a setting."""
_STEP = re.compile(r"step 2 (\d+) (\d+\.\d+)")
_took: defaultdict[tuple[str, str], list[tuple[float | None, ...]]] = defaultdict(list)
"""How long each phase of each fault took, for the table; None where nobody tells."""


def panel(what: str, in_processes: float, in_containers: float, beside_torchrun: bool = True) -> Panel:
    targets = (
        harness.Target(IN_PROCESSES, BARE, plus=in_processes),
        harness.Target(IN_CONTAINERS, BARE, plus=in_containers),
        harness.Target(TORCH, TORCHRUN if beside_torchrun else BARE_TORCH, plus=0.0 if beside_torchrun else 1.0),
    )
    return Panel(f"{what}, to the first step of the next attempt", "ranks", "s", targets)


PANELS = {
    "kill-rank": panel("a rank is killed", 0.5, 1.0),
    "kill-host": panel("a host is killed", 1.5, 3.0),
    "freeze-host": panel("a host freezes, from when that is known", 1.5, 3.0),
    "hang-rank": panel("a rank hangs, from when that is known", 0.5, 1.0, beside_torchrun=False),
}


def last_step(text: str) -> float:
    """When the last rank of the second attempt took its first step."""
    if not all_stepped(text):
        raise RuntimeError(f"not every rank took a step in the second attempt:\n{text[-2000:]}")
    return max(float(at) for _, at in _STEP.findall(text))


def all_stepped(text: str) -> bool:
    """Whether each has, in the second attempt."""
    return len({rank for rank, _ in _STEP.findall(text)}) == RANKS


def last_to_say(word: str, text: str) -> float:
    """When the last rank of the second attempt said it."""
    return max(float(at) for at in re.findall(rf"{word} 2 (\d+\.\d+)", text))


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
        restart_policy={"on": ["signal", "exit_code", "exception", "deadlock"], "max": 1},
        hang_timeout=HANG_SECONDS if fault == "hang-rank" else 1800.0,
        base_job_name="bench",
    ).fit(wait=False)
    wait_until_up(job, RANKS)
    _, struck = strike_when_there(STRIKES[fault], RunningJob(job), Target(shape, RANKS - 1))
    job.wait(jobs.PATIENCE)
    text = b"".join(line.data for line in job.logs(stream="stdout")).decode()
    return note_phases(name, fault, job, struck, text)


def note_phases(name: str, fault: str, job: Job, struck: float, text: str) -> float:
    """Keep how long each phase took; returns what the panel shows."""
    first, _ = job.attempts
    assert first.ended is not None
    told = jobs.events(job)
    news = min(event.time for event in told if isinstance(event.what, RankEnded) and struck < event.time)
    restored = [event.time for event in told if isinstance(event.what, CheckpointRestored) and event.time > first.ended]
    stepped = last_step(text)
    moments = (struck, min(news, first.ended), first.ended, restored[0], *said_moments(text), stepped)
    _took[name, fault].append(tuple(later - earlier for earlier, later in pairwise(moments)))
    return stepped - (first.ended if fault in ONCE_KNOWN else struck)


def said_moments(text: str) -> tuple[float, float]:
    """When the last rank of the second attempt was in its first line, and in its world."""
    return last_to_say("main", text), last_to_say("imported", text)


def of_torchrun(fault: str, image: str) -> tuple[float | None]:
    """Seconds from a fault to the last rank, or its host, under torchrun, until the last first step of the next world.

    Another agent in the place of a lost one is started at once, by somebody who knows of the fault. None where the next
    world does not come up.
    """
    with torchrun.agents(image, SCRIPT, ("--framework", "torch", "--begun", "/tmp/begun")) as agents:
        said = agents.wait_until(lambda text: len(torchrun.ranks_in(text)) == RANKS)
        struck = agents.strike(fault, torchrun.ranks_in(said)[RANKS - 1])
        assert struck is not None
        if fault in torchrun.REPLACED:
            agents.start()
        try:
            text = agents.wait_until(all_stepped)
        except torchrun.StoodStill:
            _took[TORCHRUN, fault].append((None,) * len(PHASES))
            return (None,)
    stepped = last_step(text)
    line, imported = said_moments(text)
    _took[TORCHRUN, fault].append((None, None, None, line - struck, imported - line, stepped - imported))
    return (stepped - struck,)


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
    if extent.large:
        yield from enduring_cases()
        return
    image, torch = jobs.our_image(), jobs.our_image("pytorch")
    with own_folders(), tempfile.TemporaryDirectory(dir=harness.MEMORY) as folder:
        begun = Path(folder, "begun")
        begun.touch()
        for fault in ("kill-rank",) if extent.quick else PANELS:
            ways = [Way(BARE, "floor", partial(bare, bare_mpirun(str(begun))))]
            for name, chosen in ((IN_PROCESSES, None), (IN_CONTAINERS, image)):
                ways.append(Way(name, "ours", partial(of_job, name, fault, chosen, "mpi", Path(folder))))
            ways.append(Way(BARE_TORCH, "floor", partial(bare_torch, torch), at_most=harness.FEW))
            ways.append(Way(TORCH, "ours", partial(of_job, TORCH, fault, torch, "torch", Path(folder))))
            if fault in torchrun.FAULTS:
                ways.append(Way(TORCHRUN, "peer", partial(of_torchrun, fault, torch), at_most=harness.FEW))
            yield Case((PANELS[fault],), RANKS, tuple(ways))


def enduring_cases() -> Iterator[Case]:
    """Twenty minutes under random faults, by class of fault, of which a few are taken at a time."""
    torch, seconds = jobs.our_image("pytorch"), MINUTES * 60
    with own_folders(), tempfile.TemporaryDirectory(dir=harness.MEMORY) as folder:
        titles = list(enduring.CLASSES)
        for first in range(0, len(titles), CLASSES_AT_A_TIME):
            runs: dict[Hashable, Callable[[], float]] = {}
            for title in (chosen := titles[first : first + CLASSES_AT_A_TIME]):
                faults = enduring.CLASSES[title]
                runs[title, TORCHRUN] = partial(enduring.of_torchrun, faults, seconds, torch)
                runs[title, TORCH] = partial(enduring.of_fit, title, seconds, torch, Path(folder))
            taken = enduring.SideBySide(runs)
            for title in chosen:
                ways = (
                    Way(TORCHRUN, "peer", partial(taken.result, (title, TORCHRUN)), at_most=1),
                    Way(TORCH, "ours", partial(taken.result, (title, TORCH)), at_most=1),
                )
                yield Case((goodput_panel(title),), MINUTES, ways)
                ledger = Way(TORCH, "ours", partial(enduring.unattributed, title), at_most=1)
                yield Case((unattributed_panel(title),), MINUTES, (ledger,))


def goodput_panel(title: str) -> Panel:
    # Where ranks alone are killed, torchrun restarts them, too: what is left to gain is less than ten points.
    target = harness.Target(TORCH, TORCHRUN, plus=0.0 if title == enduring.RANKS_ALONE else 10.0)
    words = f"goodput while {title}, every {enduring.BETWEEN_FAULTS:g} s in the mean"
    return Panel(words, "minutes", "%", (target,), higher_is_better=True)


def unattributed_panel(title: str) -> Panel:
    return Panel(f"what our ledger cannot explain while {title}", "minutes", "%", (harness.Target(TORCH, plus=5.0),))


def tables() -> Sequence[Table]:
    rows = tuple((name, fault, *map(middle, zip(*taken, strict=True))) for (name, fault), taken in _took.items())
    words = (
        "Medians in seconds, one after the other from the fault. That a rank has ended is noticed together with the "
        f"verdict; a frozen host after 2 to 3.5 s; a world that stands still after {HANG_SECONDS:g} s here, as "
        "`hang_timeout` says. torchrun does not tell when it notices anything, and never notices a rank that hangs; "
        f"where it has no figure at all, its next world did not come up within {torchrun.PATIENCE:g} s."
    )
    found = [Table("Where the time goes", ("", "fault", *PHASES), rows, words)] if rows else []
    if enduring.ledgers:
        found.append(ledger_table())
    return found


def ledger_table() -> Table:
    """Where the time of the jobs went that were under random faults."""
    phases = sorted({phase for shares in enduring.ledgers.values() for phase in shares})
    found = enduring.ledgers.items()
    lines = ((title, *(f"{shares.get(each, 0.0):.1%}" for each in phases)) for title, shares in found)
    words = "Shares of the rank-seconds from the start of a job to its end, as the job's own ledger has them."
    return Table("What the ledger of each of our jobs says", ("while", *phases), tuple(lines), words)


def middle(taken: Sequence[float | None]) -> str:
    """The median of what one phase took, where anybody tells."""
    known = [each for each in taken if each is not None]
    return f"{statistics.median(known):.3f}" if known else "–"


METRIC = Metric(
    "S14",
    "Recovery",
    "Two hosts with two ranks each. From the fault, which hits the last rank or its host, until the last rank of the "
    "next attempt has taken its first step; where a host freezes or a rank hangs, from when that is known. The floor "
    "is the bare script, started again by mpirun on one host, or by torchrun in one container. The peer is torchrun "
    "with `--max-restarts` and an agent for each host, both in one container of the same image; where a host is lost, "
    "another agent is started in the moment of the fault, as something beside torchrun would have to do once it "
    "notices.",
    cases,
    tables=tables,
)
