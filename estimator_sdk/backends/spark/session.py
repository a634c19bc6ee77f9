"""The Spark session of this process, which is then its driver: what it has room for, and what a job takes of that."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InvalidArgument
from ...values.spark_process import is_remote

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.resource import ResourceProfile

    from ...plan.plan import Plan

COMING = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""How long executors may take to come to a session: "Scheduling" in Spark's documentation of its configuration."""
LOOK_SECONDS = 0.2
_GPUS = "spark.task.resource.gpu.amount"


class Tasks(NamedTuple):
    """The tasks of a stage, all of which run at once."""

    number: int
    of_each_host: int | None = None
    """How many of them are one host; None is as many as all executors have that have any."""
    processes: int = 1
    """For how many ranks one task takes the cores, and the GPUs, that Spark gives a task."""

    @classmethod
    def of_plan(cls, plan: Plan, context: SparkContext) -> Tasks:
        """Each host is one task, with the cores of all its processes.

        In a session without executors, where no stage can have tasks of its own kind, it is as many tasks.
        """
        hosts, processes = len(plan.hosts), plan.processes_per_host
        java: Any = context._jsc.sc()
        if processes == 1:
            return cls(hosts, 1)
        return cls(hosts * processes, processes) if java.isLocal() else cls(hosts, 1, processes)

    def cores(self, context: SparkContext) -> int:
        """How many cores one task takes."""
        return self.processes * int(context.getConf().get("spark.task.cpus", "1"))

    def profile(self, context: SparkContext) -> ResourceProfile | None:
        """What one task takes of its executor; None is what Spark's configuration says."""
        if self.processes == 1:
            return None
        from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

        wanted = TaskResourceRequests().cpus(self.cores(context))
        if (gpus := context.getConf().get(_GPUS)) is not None:
            wanted = wanted.resource("gpu", self.processes * float(gpus))
        return ResourceProfileBuilder().require(wanted).build


def active() -> SparkContext | None:
    """The session's context in this process, which is then its driver; None if there is none."""
    pyspark = sys.modules.get("pyspark")  # who has a session has imported it
    if pyspark is None or is_remote():  # the latter may have no such class
        return None
    found: SparkContext | None = pyspark.SparkContext._active_spark_context
    return found


def required(backend: str) -> SparkContext:
    """The same. Raises InvalidArgument if there is none."""
    found = active()
    if found is not None:
        return found
    if find_spec("pyspark") is None:
        what = f"backend {backend!r} needs pyspark, which is not installed here"
        raise InvalidArgument("backend", f"{what}; pip install 'estimator-sdk[spark]'")
    what = f"backend {backend!r} runs hosts on the executors of a Spark session"
    if is_remote():
        what += ", but that of this process is one of Spark Connect, whose client cannot have executors start hosts"
        hint = "run this program where the driver is, such as with spark-submit, or choose another backend"
    else:
        what += ", but this process has none"
        hint = "call SparkSession.builder.getOrCreate() in this program first, or choose another backend"
    raise InvalidArgument("backend", f"{what}; {hint}")


def check_static(context: SparkContext, argument: str, what: str, instead: str) -> None:
    """Raises InvalidArgument, about an argument, where Spark refuses barrier stages."""
    java: Any = context._jsc.sc()
    if context._jvm.org.apache.spark.util.Utils.isDynamicAllocationEnabled(java.conf()):  # type: ignore[union-attr]
        told = f"{what} a barrier stage, which Spark refuses while spark.dynamicAllocation.enabled is true"
        raise InvalidArgument(argument, f"{told}; start the session with false, or {instead}")


def slots(context: SparkContext, tasks: Tasks) -> int:
    """How many tasks of that kind all executors can run at once.

    If these are too few, those of a session that has just been started are waited for.
    """
    java: Any = context._jsc.sc()
    manager, own = java.resourceProfileManager(), tasks.profile(context)
    profile = own._java_resource_profile if own is not None else manager.defaultResourceProfile()
    if own is not None:
        manager.addResourceProfile(profile)
    while True:
        found = int(java.maxNumConcurrentTasks(profile))
        if found >= tasks.number or java.isLocal():
            return found
        if time.time() >= context.startTime / 1000 + int(java.conf().getTimeAsSeconds(COMING, "30s")):
            return found
        time.sleep(LOOK_SECONDS)


def check_room(context: SparkContext, plan: Plan) -> None:
    """Raises InvalidArgument for a job that has more tasks than there are slots, and where Spark refuses its stage."""
    tasks, hosts = Tasks.of_plan(plan, context), len(plan.hosts)
    check_static(context, "instance_count", f"instance_count={hosts} needs", "choose another backend")
    found = slots(context, tasks)
    if tasks.number <= found:
        return
    each = f" with processes_per_host={plan.processes_per_host}" if plan.processes_per_host > 1 else ""
    cores = f" with {tasks.cores(context)} cores each" if tasks.processes > 1 else ""
    what = f"instance_count={hosts}{each} needs {tasks.number} slots{cores} for tasks at once"
    hint = "lower instance_count, or give the session more executors or cores"
    raise InvalidArgument("instance_count", f"{what}, but Spark's executors have {found} now; {hint}")
