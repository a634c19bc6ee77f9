"""R3 and R4: ranks that stand still end the job with the culprit named, and nothing that works silently is accused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from estimator_container.contract.names import HANG_FLOOR
from estimator_container.failures.verdict import Verdict

from estimator_sdk import Estimator, Job
from tests.conformance.conftest import Script
from tests.conformance.jobs import HANG_FLOORS, MEET, ends_by_hang, events

FLOOR = HANG_FLOORS[0]
QUICK = {HANG_FLOOR: str(FLOOR)}
TORCH = {"torch_distributed": {"enabled": True, "processes_per_host": 2}}
MIRRORED = {"multi_worker_mirrored_strategy": {"enabled": True}}
STEPS = """
import os, sys, threading, time
for step in range(30):  # of which two looks have to see some each, though the first may come late
    print("step", step, flush=True)
    time.sleep(0.1)
"""
MPI_STEPS = f"""{STEPS}
from mpi4py import MPI
world = MPI.COMM_WORLD
"""
READS = """
def read_what_nobody_writes():
    os.read(os.pipe()[0], 1)
"""
LOCKS = """
def take_it_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""


@pytest.fixture
def ends(script: Script) -> Callable[..., tuple[Job, Verdict]]:
    """Runs a script whose ranks stand still: see `ends_by_hang`. `hang_timeout` grows with the floor."""

    def run(
        source: str, shows: Callable[[Job], bool] = lambda job: True, hang_timeout: float | None = None, **given: object
    ) -> tuple[Job, Verdict]:
        def made(floor: float) -> Estimator:
            limit = {} if hang_timeout is None else {"hang_timeout": hang_timeout * floor / FLOOR}
            return script.estimator(source, environment={HANG_FLOOR: str(floor)}, **limit, **given)

        return ends_by_hang(made, shows)

    return run


@pytest.mark.law("R3")
@pytest.mark.parametrize(
    ("failure", "place"),
    [
        ("world.Allreduce(MPI.IN_PLACE, bytearray(8))", None),
        (f"exec({(READS + 'read_what_nobody_writes()')!r})", "read_what_nobody_writes"),
        (f"exec({(LOCKS + 'take_it_twice()')!r})", "take_it_twice"),
    ],
    ids=["another collective", "a blocked read", "a lock"],
)
def test_a_rank_that_provably_stands_still_is_named_soon(ends, failure, place):
    source = f"{MPI_STEPS}\nif world.rank == 1:\n    {failure}\nworld.barrier()\n"
    _, found = ends(source, hosts=1, processes=3)
    assert (found.kind, found.rank, found.host) == ("deadlock", 1, "algo-1")
    assert "are allowed after the silences so far" in found.message
    assert place is None or place in found.message


@pytest.mark.law("R3")
@pytest.mark.parametrize("distribution", [None, MIRRORED, TORCH], ids=["none", "mirrored", "torch"])
def test_a_job_of_any_distribution_that_stands_still_ends(ends, distribution):
    meet = "" if distribution is None else MEET
    source = f"{STEPS}{meet}{READS}read_what_nobody_writes()"
    given = {} if distribution is None else {"distribution": distribution}
    job, found = ends(source, hosts=2, **given)
    assert found.kind == "deadlock"
    assert "read_what_nobody_writes" in found.detail
    # On a busy machine one may seem to work at first, and has more time; and then there is less to wait for.
    *shown, told = events(job, "ranks_stand")
    allowed = [each["report"]["allowed"] for each in shown]
    assert events(job, "ranks_move") or all(each > told["report"]["allowed"] for each in allowed), allowed
    assert len(told["report"]["ranks"]) == (4 if distribution is TORCH else 2)


@pytest.mark.law("R3")
def test_a_single_process_that_stands_still_is_named_with_its_line(ends):
    _, found = ends(f"{STEPS}{LOCKS}take_it_twice()")
    assert (found.kind, found.rank, found.host) == ("deadlock", None, "algo-1")
    assert found.message.endswith("; it is at train.py, line 10 in take_it_twice")


@pytest.mark.law("R3", "R4")
@pytest.mark.parametrize(
    "work", ["while True: pass", "import collections, itertools; collections.deque(itertools.count(), maxlen=0)"]
)
def test_a_rank_that_may_work_is_shown_and_ends_the_job_at_hang_timeout(ends, work):
    source = f"{MPI_STEPS}\nif world.rank == 1:\n    {work}\nworld.barrier()\n"

    def is_shown_before(job: Job) -> bool:
        return len(events(job, "ranks_stand")) > 1

    job, found = ends(source, is_shown_before, processes=2, hang_timeout=8)
    assert (found.kind, found.rank) == ("deadlock", 1)
    shown, *_, ended = events(job, "ranks_stand")  # on a busy machine who works is seen late, and is told again
    assert shown["seconds"] < ended["seconds"] > 7.5
    assert "are allowed by hang_timeout" in found.message


@pytest.mark.law("R4")
def test_a_sleep_is_shown_and_has_more_time(script):
    for floor in HANG_FLOORS:  # on a busy machine it may have more time already, or be seen to move
        source = f"{STEPS}time.sleep({6 * floor})\nprint('on', flush=True)\ntime.sleep({2 * floor})"
        job = script.run(source, environment={HANG_FLOOR: str(floor)})
        if events(job, "ranks_move"):
            break
    assert 0 < len(events(job, "ranks_move")) <= len(events(job, "ranks_stand"))


@pytest.mark.law("R4")
@pytest.mark.parametrize(
    "silence",
    [
        "if world.rank == 0: exec('for n in range(17):\\n' + '    time.sleep(0.05)\\n' * 3)",
        "import hashlib\nif world.rank == 0: hashlib.pbkdf2_hmac('sha512', b'a', b'a', 4_000_000)",
    ],
    ids=["of many lines", "native"],
)
def test_an_evaluation_on_one_rank_ends_nothing(script, silence):
    script.run(f"{MPI_STEPS}\n{silence}\nworld.barrier()\n", processes=2, environment=QUICK, hang_timeout=600)


@pytest.mark.law("R4")
def test_a_slow_first_step_is_not_accused(script):
    job = script.run(f"import time\nprint('starting', flush=True)\ntime.sleep({2 * FLOOR})", environment=QUICK)
    assert events(job, "ranks_stand") == []
