"""S21: a training step of Horovod's optimizer on Keras 3, beside a bare allreduce and beside Horovod on Keras 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from .. import jobs, peers
from ..harness import SCRIPTS, Case, Extent, Metric, Panel, Target
from ..turns import Clock, Together

SCRIPT = SCRIPTS / "keras_step.py"
ADAPTED, BARE, STOCK = "Horovod's name on Keras 3", "an allreduce and no more, Keras 3", "Horovod on Keras 2"
KERAS_2 = "keras-2"
RANKS = 2
Groups = list[tuple[float, float, int]]
"""When groups of steps began and ended, by the time of day, and how many steps they were."""


def panel(title: str) -> Panel:
    return Panel(title, "ranks", "ms", (Target(ADAPTED, BARE, 1.02), Target(ADAPTED, STOCK, 1.02)))


PANELS = {"loop": panel("a step of a loop of one's own"), "fit": panel("a step of fit()")}


def train(way: str, training: str, groups: int) -> Groups:
    """The groups of one launch, but for the first, which also compiles."""
    environment = peers.keras_2() if way == "stock" else {}
    set_first = ["/usr/bin/env", *(f"{name}={value}" for name, value in environment.items())]
    argv = [*set_first, *jobs.quickest_mpirun(RANKS), sys.executable, str(SCRIPT), way, training, f"--groups={groups}"]
    found = (line.split()[1:] for line in jobs.said(argv).splitlines() if line.startswith("steps "))
    return [(float(begun), float(ended), int(count)) for begun, ended, count in found][1:]


def readings(groups: Groups, clock: Clock) -> list[float]:
    return [clock.between(begun, ended) / count for begun, ended, count in groups]


def cases(extent: Extent) -> Iterator[Case]:
    groups = 4 if extent.quick else 8
    for training, shown in PANELS.items():
        works = {ADAPTED: partial(train, "adapted", training, groups), BARE: partial(train, "bare", training, groups)}
        if KERAS_2 not in extent.left_out:
            works[STOCK] = partial(train, "stock", training, groups)
        ways = Together(works, readings).ways({ADAPTED: "ours", BARE: "floor"})
        yield Case((shown,), RANKS, ways, runs=3 * extent.many)


METRIC = Metric(
    "S21",
    "A step of Horovod's optimizer on Keras 3",
    "A model of 1.9 million parameters with batches of 32 on 2 ranks of one host, each with one thread; groups of 40 "
    "steps. Ours is `hvd.DistributedOptimizer` as `estimator_container.horovod_keras3` adapts it. The floor is an "
    "optimizer of Keras 3 that calls an allreduce for each gradient before it applies, and nothing else. The peer is "
    "the same name of the same Horovod and TensorFlow with Keras 2, where Horovod is right as it is. All are under "
    "way at once and take turns of half a second, in which the others are frozen, and only their own turns count.",
    cases,
    peers=(KERAS_2,),
)
