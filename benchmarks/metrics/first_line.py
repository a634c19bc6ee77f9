"""S2: from the call of `fit()` until every rank is in the world, on hosts that are containers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial

from .. import jobs, machines
from ..harness import Case, Extent, Metric, Panel, Target, Way
from ..peers import TOOLKIT_IMAGE

FLOOR = "containers that run MPI_Init alone"
PROGRAM = ("env", "OPAL_PREFIX=/opt/venv", "OMPI_MCA_ess_singleton_isolated=1", *jobs.LEFT_ALONE)
PROGRAM += ("python3", "/hello.py")
"""Open MPI's wheel has to be told where it lies; that it need not start a daemon for a world of one; and that UCX may
leave the C library alone, as in a job."""
PANEL = Panel(
    "from fit() to all ranks in the world, in containers",
    "hosts",
    "s",
    (Target("fit()", FLOOR, 1.25), Target("fit()", FLOOR, 1.1, of="slope")),
)


def alone(image: str, count: int) -> float:
    """Seconds until as many containers, each a world of its own, have said that MPI_Init is over."""
    called = time.time()
    with machines.bare_containers(image, count, PROGRAM, {str(jobs.HELLO): "/hello.py"}) as containers:
        for each in containers:
            each.wait(timeout=jobs.PATIENCE)
        said = b"".join(each.logs() for each in containers).decode()
    return max(float(at) for at in re.findall(r"world (\S+)", said)) - called


def ours(image: str, count: int) -> float:
    told = jobs.hello(jobs.estimator(jobs.HELLO, count, image), count)
    return told.in_world - told.called


def theirs(count: int) -> float:
    told = jobs.sagemaker_local(count)
    return told.in_world - told.called


def cases(extent: Extent) -> Iterator[Case]:
    image = jobs.our_image()
    with jobs.own_home():
        for count in extent.pick((2, 4, 8, 16), (2, 4)):
            ways = [
                Way(FLOOR, "floor", partial(alone, image, count)),
                Way("fit()", "ours", partial(ours, image, count)),
            ]
            if count == 2 and not extent.quick:
                local = partial(theirs, count)
                ways.append(Way("SageMaker local mode", "peer", local, peer="sagemaker", at_most=1))
            yield Case((PANEL,), count, tuple(ways))


METRIC = Metric(
    "S2",
    "To the first line of the script",
    "One rank a host, the image is there. The clock starts when `fit()` is called and stops when the last rank's "
    "MPI_Init has returned. The floor: "
    "as many containers on a network of their own, started by the same engine as many at a time, in which Python calls "
    "MPI_Init, each a "
    f"world of its own. SageMaker's local mode runs an image with `sagemaker-training` ({TOOLKIT_IMAGE}); a run of it "
    "takes most of a minute, so "
    "it is taken at 2 hosts and less often; its SDK is imported before the clock starts.",
    cases,
    peers=("sagemaker", "docker-compose", "sagemaker-training"),
)
