"""How much of its time a job trains while its ranks and hosts are hurt again and again."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.spec.restart_policy import restartable
from tests.chaos.faults import FAULTS, Fault, Shape, Target, signal_rank
from tests.chaos.rounds import strike_when_there
from tests.chaos.running import RunningJob

from . import torchrun
from .harness import SCRIPTS
from .torchrun import HOSTS, PROCESSES

SCRIPT = SCRIPTS / "enduring.py"
STEP_SECONDS = 0.1  # as the script has it
BETWEEN_FAULTS = 60.0  # seconds, in the mean
SEED = 20261124
STRIKES = {**FAULTS, "hang-rank": Fault("a rank that waits for ever", signal_rank(signal.SIGUSR1), once_up=True)}
RANKS_ALONE = "ranks are killed"
CLASSES = {
    RANKS_ALONE: ("kill-rank",),
    "hosts are killed or freeze": ("kill-host", "freeze-host"),
    "ranks and hosts": ("kill-rank", "kill-host", "freeze-host"),
    "ranks hang": ("hang-rank",),
}
"""What happens to a job, by class of fault; of a rank that hangs torchrun never hears."""
ledgers: dict[str, dict[str, float]] = {}
"""Class of fault -> phase -> its share of the time of our job, as the ledger of that has it."""
_INTERRUPTED = threading.Event()
_STEP = re.compile(r"^step (\d+)$", re.MULTILINE)


class SideBySide:
    """Runs that are under way at the same time, so that what else the machine does comes to all of them alike."""

    def __init__(self, runs: Mapping[Hashable, Callable[[], float]]) -> None:
        self._runs = runs
        self._futures: dict[Hashable, Future[float]] = {}

    def result(self, name: Hashable) -> float:
        """What a run gave; whoever asks first starts all of them, and waits until the last one is over.

        Raises what the run raised. Who is interrupted here ends all of them.
        """
        if not self._futures:
            pool = ThreadPoolExecutor(len(self._runs))
            self._futures = {each: pool.submit(run) for each, run in self._runs.items()}
            pool.shutdown(wait=False)
        try:
            wait(self._futures.values())
        except BaseException:
            _INTERRUPTED.set()
            wait(self._futures.values())
            raise
        return self._futures[name].result()


def schedule(faults: Sequence[str], seconds: float) -> Iterator[tuple[float, str, int]]:
    """When which fault strikes which rank, or its host, in seconds after the start: the same for everybody.

    >>> [(round(at), fault) for at, fault, rank in schedule(["kill-rank"], 120.0)]
    [(104, 'kill-rank')]
    """
    chance, at = random.Random(SEED), 0.0
    while (at := at + chance.expovariate(1 / BETWEEN_FAULTS)) < seconds:
        yield at, chance.choice(faults), chance.randrange(HOSTS * PROCESSES)


def goodput(said: str, seconds: float) -> float:
    """The share of the time, in per cent, that is in the steps up to the last one."""
    last = _STEP.findall(said)[-1:]
    return 100 * STEP_SECONDS * int(last[0]) / seconds if last else 0.0


def of_fit(title: str, seconds: float, image: str, store: Path) -> float:
    """The goodput of a job of ours in containers, which tries everything again, under a class of faults."""
    faults = CLASSES[title]
    shape = Shape("docker", HOSTS, PROCESSES)
    job = Estimator(
        entry_point=SCRIPT,
        image_uri=image,
        backend=shape.backend,
        instance_count=HOSTS,
        distribution={"torch_distributed": {"enabled": True, "processes_per_host": PROCESSES}},
        checkpoint_s3_uri=f"file://{store}/{uuid.uuid4().hex}",
        max_retry_attempts=30,
        restart_policy={"on": restartable(), "max": 1000},
        base_job_name="bench",
        stop_timeout=1,
    ).fit(wait=False)
    started = time.monotonic()
    try:
        for at, fault, rank in schedule(faults, seconds):
            _sleep_until(started + at)
            if job.status != "InProgress":
                break  # its policy has given it up: no more steps are made
            strike_when_there(STRIKES[fault], RunningJob(job), Target(shape, rank))
        _sleep_until(started + seconds)
        said = b"".join(line.data for line in job.logs(stream="stdout")).decode()
    finally:
        job.stop()
        with contextlib.suppress(JobFailed):
            job.wait()
    ledger = job.ledger()
    ledgers[title] = {phase: spent / ledger.wall for phase, spent in ledger.seconds.items()}
    return goodput(said, seconds)


def unattributed(title: str) -> float:
    """What the ledger of our job under a class of faults does not explain, in per cent of its time."""
    return 100 * ledgers[title]["unattributed"]


def of_torchrun(faults: Sequence[str], seconds: float, image: str) -> float:
    """That of torchrun, for which somebody starts another agent in the moment in which a host is lost."""
    with torchrun.agents(image, SCRIPT, ("--folder", "/tmp"), restarts=1000, seconds=seconds) as agents:
        started = time.monotonic()
        for at, fault, rank in schedule(faults, seconds):
            _sleep_until(started + at)
            ranks = torchrun.ranks_in(agents.said)
            if agents.strike(fault, ranks[rank]) is not None and fault in torchrun.REPLACED:
                agents.start()
        _sleep_until(started + seconds)
        return goodput(agents.said, seconds)


def _sleep_until(moment: float) -> None:
    if _INTERRUPTED.wait(max(0.0, moment - time.monotonic())):
        raise RuntimeError("the benchmark was interrupted")
