"""`HorovodRunner(np=2).run(main, …)`: the interface that users of Databricks' sparkdl know."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InvalidArgument
from ..spec import instances
from ..values.naming import shown, suggestion
from ..values.spark_process import is_remote
from .call import Call
from .function_job import FunctionJob

if TYPE_CHECKING:
    from ..display.progress import Logs
    from ..estimator.estimator import Estimator
    from ..spec.training_input import Inputs

Verbosity = Literal["all", "log_callback_only"]
_SHOWN: dict[Verbosity, Logs] = {"all": "all", "log_callback_only": "rank0"}
# Arguments that would lead elsewhere -> what they may be where the processes are on this machine.
_ON_THIS_MACHINE: dict[str, tuple[object, ...]] = {
    "instance_count": (None, 1),
    "instance_type": (None, *instances.LOCAL),
    "instance_groups": (None,),
}
_PLACES = ("backend", "instance_type", "instance_count", "instance_groups", "image_uri", "hosts", "hostfile")
"""Arguments that say where a job runs, so that it is not on the executors of a Spark session."""


class HorovodRunner:
    """Runs a function on all ranks of an MPI world, which Horovod and mpi4py find, and returns rank 0's return value.

    np: the number of processes. In a Spark session they are as many tasks that run at once, and elsewhere, or where
        `settings` say where the job runs, they are spread evenly over `instance_count` hosts (default: one host). A
        negative number means that many processes on this machine.
    driver_log_verbosity: which lines are shown meanwhile: `all`, or with `log_callback_only` those of rank 0, where
        callbacks report.
    inputs: channels, as for `Estimator.fit`.
    settings: arguments of `Estimator`, such as `instance_type`, `instance_count`, `image_uri`, `backend`,
        `environment`, `dependencies`, `max_run`.

    Raises InvalidArgument for a wrong argument, before anything has started.
    """

    def __init__(
        self,
        np: int,
        driver_log_verbosity: Verbosity = "log_callback_only",
        inputs: Inputs | None = None,
        **settings: Any,  # noqa: ANN401 - the types are those of Estimator, which checks them
    ) -> None:
        if driver_log_verbosity not in tuple(_SHOWN):
            known = suggestion(driver_log_verbosity, _SHOWN)
            what = f"driver_log_verbosity {shown(driver_log_verbosity)} is not known"
            raise InvalidArgument("driver_log_verbosity", f"{what}; {known}")
        if "distribution" in settings:
            what = "HorovodRunner takes no distribution: it is an MPI world of np processes"
            raise InvalidArgument("distribution", f"{what}; give np=, or custom_mpi_options= for mpirun")
        mpi = {"enabled": True, "custom_mpi_options": settings.pop("custom_mpi_options", None)}
        _check_np(np, settings)
        given = FunctionJob("HorovodRunner", settings, inputs)
        estimator = given.check("np", "driver_log_verbosity", "custom_mpi_options")
        mpi["processes_per_host"] = _processes_per_host(np, _hosts(estimator))
        self._np = np
        self._names_a_place = any(settings.get(name) is not None for name in _PLACES)
        self._logs = _SHOWN[driver_log_verbosity]
        self._job = FunctionJob("HorovodRunner", {**settings, "distribution": {"mpi": mpi}}, inputs)
        self._job.check()

    def run(self, main: Callable[..., Any], **kwargs: Any) -> Any:  # noqa: ANN401 - the user's function
        """Call `main(**kwargs)` on every rank, wait for all, and return rank 0's return value.

        The function is sent with everything that it uses: the variables around it, including a notebook's, and the
        functions of its own module; each rank imports again what it imports from installed packages.

        Raises InvalidArgument, before anything has started, for arguments that `main` does not accept, and for objects
        that cannot be pickled, with the variable's name; the exception of the first rank that failed, whose cause is
        the JobFailed with its traceback; and JobFailed itself if a rank ended without an exception, or with one that
        cannot be pickled.

        In a Spark session also: InvalidArgument for more processes than Spark has slots, and EstimatorError where
        Spark does not start the tasks, or ends them.
        """
        call = Call(main, (), kwargs)
        if self._np > 0 and not self._names_a_place and "pyspark" in sys.modules:
            from ..backends.spark import session
            from . import on_spark

            if (context := session.active()) is not None:
                return on_spark.run(context, self._np, self._job, call, self._logs)
            if is_remote():
                what = f"HorovodRunner(np={self._np}) runs on this machine: its session is one of Spark Connect"
                hint = "run this program where the driver is to have executors"
                warnings.warn(f"{what}; {hint}, or write np={-self._np}", stacklevel=2)
        return self._job.run(call, self._logs)


def _check_np(np: object, settings: dict[str, Any]) -> None:
    if not isinstance(np, int) or isinstance(np, bool) or np == 0:
        what = "a whole number of processes, or a negative one for as many on this machine"
        raise InvalidArgument("np", f"np must be {what}, not {shown(np)}; write np=2 or np=-2")
    if np > 0:
        return
    for name, allowed in _ON_THIS_MACHINE.items():
        given = settings.get(name)
        if given not in allowed:
            what = f"np={np} runs {-np} processes on this machine, where {name}={given!r} has no effect"
            raise InvalidArgument(name, f"{what}; leave it out, or write np={-np}")


def _hosts(estimator: Estimator) -> int:
    groups = estimator.instance_groups or ()
    return sum(group.instance_count for group in groups) or estimator.instance_count


def _processes_per_host(np: int, hosts: int) -> int:
    if np % hosts:
        what = f"np={np} processes do not spread evenly over instance_count={hosts} hosts"
        raise InvalidArgument("np", f"{what}; choose a multiple, such as np={-(-np // hosts) * hosts}")
    return abs(np) // hosts
