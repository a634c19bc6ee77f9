"""A call of a function as a job on the executors of a Spark session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..backends.spark import NAME, session, stage
from ..errors import EstimatorError, InvalidArgument, JobFailed
from ..spec.training_input import FrameInput, channels, named
from ..values.spark_process import is_frame
from .call import Call
from .function_job import FunctionJob

if TYPE_CHECKING:
    from pyspark import SparkContext

    from ..display.progress import Logs


def run(context: SparkContext, np: int, job: FunctionJob, call: Call, logs: Logs) -> Any:  # noqa: ANN401
    """Run the call as that job in a world of `np` tasks, wait for it, and return what rank 0 returned.

    Raises as `FunctionJob.run` and `stage.started` do, and InvalidArgument; what cannot be sent starts no stage.
    """
    call.check()
    call.check_pickling()
    _check(context, np, job)
    with stage.started(context, session.Tasks(np), call.name) as tasks:
        mpi = {**job.settings["distribution"]["mpi"], "processes_per_host": tasks.slots}
        places = {"backend": NAME, "instance_count": len(tasks.hosts)}
        placed = replace(job, settings={**job.settings, **places, "distribution": {"mpi": mpi}})
        try:
            return placed.run(call, logs)
        except JobFailed:
            raise
        except EstimatorError as error:
            if tasks.ended_by is None:
                raise
            raise EstimatorError(f"Spark has ended the tasks of {call.name}: {tasks.ended_by}") from error


def _check(context: SparkContext, np: int, job: FunctionJob) -> None:
    """Raises InvalidArgument for inputs that it cannot have, too many tasks, and where Spark refuses the stage."""
    if job.settings.get("queue"):
        what = "queue=True waits for room on the machines of a pool, but the slots of executors are Spark's"
        raise InvalidArgument("queue", f"{what}; leave it out")
    for where, given in named(job.inputs):
        if isinstance(given, FrameInput) or is_frame(given):
            what = f"{where} is a DataFrame, which is dealt out to hosts that are known only once Spark has their tasks"
            hint = (
                f"write it with dataframe.write.parquet(path), and give that path, or use Estimator(backend={NAME!r})"
            )
            raise InvalidArgument(where, f"{what}; {hint}")
    channels(job.inputs)
    session.check_static(context, "np", f"np={np} needs", f"write np={-np} for this machine")
    slots = session.slots(context, session.Tasks(np))
    if np > slots:
        what = f"np={np} processes need {np} slots for tasks at once, but Spark's executors have {slots} now"
        raise InvalidArgument("np", f"{what}; lower np, or give the session more executors or cores")
