"""A call of a function as a job on the executors of a Spark session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..backends.spark import NAME, stage
from ..errors import EstimatorError, JobFailed
from .call import Call
from .function_job import FunctionJob

if TYPE_CHECKING:
    from pyspark import SparkContext

    from ..display.progress import Logs


def active_context() -> SparkContext | None:
    """The session's context in this process, which is then Spark's driver; None if there is none."""
    import pyspark

    return pyspark.SparkContext._active_spark_context


def run(context: SparkContext, np: int, job: FunctionJob, call: Call, logs: Logs) -> Any:  # noqa: ANN401
    """Run the call as that job in a world of `np` tasks, wait for it, and return what rank 0 returned.

    Raises as `FunctionJob.run`, `stage.check` and `stage.started` do; what cannot be sent starts no stage.
    """
    call.check()
    call.check_pickling()
    stage.check(context, np, job.settings)
    with stage.started(context, np, call.name) as tasks:
        mpi = {**job.settings["distribution"]["mpi"], "processes_per_host": tasks.slots}
        places = {"backend": NAME, "hosts": tasks.hosts, "instance_count": len(tasks.hosts)}
        placed = replace(job, settings={**job.settings, **places, "distribution": {"mpi": mpi}})
        try:
            return placed.run(call, logs)
        except JobFailed:
            raise
        except EstimatorError as error:
            if tasks.ended_by is None:
                raise
            raise EstimatorError(f"Spark has ended the tasks of {call.name}: {tasks.ended_by}") from error
