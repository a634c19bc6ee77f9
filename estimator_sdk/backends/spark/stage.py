"""The barrier stage whose tasks keep a job's hosts, as the driver sees it."""

from __future__ import annotations

import hmac
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract.names import SECRET_BYTES

from ...errors import BackendError, InvalidArgument
from . import launcher, on_executor

if TYPE_CHECKING:
    from pyspark import SparkContext

    from ...plan.plan import Plan
    from ..supervised.job import LocalJob

READ_SECONDS = 10.0
"""That the first task may take to say where all are, once it is connected."""
BUSY_SECONDS = 15.0
"""After which it is said that Spark has not started the tasks yet."""
LEAVE_SECONDS = 10.0
"""That tasks may take to end after their job before Spark is asked to end them."""
LOST_SECONDS = 15.0
"""That a supervisor may take to notice that Spark has ended its hosts."""
_MOST = 1 << 20
_FAILURE = "due to stage failure"
"""In Spark's words where a task was lost or has failed, and not where somebody has cancelled the job."""
_CURRENT: ContextVar[Stage] = ContextVar("stage")


def current() -> Stage | None:
    """The stage that is there for the job which is about to be started; None outside of one."""
    return _CURRENT.get(None)


def check(context: SparkContext, np: int, settings: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for more tasks than slots, where Spark refuses barrier stages, and for checkpoints."""
    if settings.get("queue"):
        what = "queue=True waits for room on the machines of a pool, but the slots of executors are Spark's"
        raise InvalidArgument("queue", f"{what}; leave it out")
    uri = settings.get("checkpoint_s3_uri")
    if uri is not None:
        what = f"checkpoint_s3_uri is {uri}, but hosts on Spark keep no checkpoints"
        raise InvalidArgument("checkpoint_s3_uri", f"{what}; let the function write to a store or a shared folder")
    spark: Any = context._jsc.sc()
    if context._jvm.org.apache.spark.util.Utils.isDynamicAllocationEnabled(spark.conf()):  # type: ignore[union-attr]
        what = f"np={np} needs a barrier stage, which Spark refuses while spark.dynamicAllocation.enabled is true"
        raise InvalidArgument("np", f"{what}; start the session with false, or write np={-np} for this machine")
    slots = spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile())
    if np > slots:
        what = f"np={np} processes need {np} slots for tasks at once, but Spark's executors have {slots} now"
        raise InvalidArgument("np", f"{what}; lower np, or give the session more executors or cores")


@contextmanager
def started(context: SparkContext, np: int, title: str) -> Iterator[Stage]:
    """A stage of so many tasks, once all of them are there; it has ended when the block is left.

    Raises BackendError where Spark does not start them.
    """
    stage = Stage(context, np, title)
    token = _CURRENT.set(stage)
    try:
        stage.start()
        yield stage
    finally:
        _CURRENT.reset(token)
        stage.close()


class Stage:
    """One stage, whose Spark job runs in a thread of its own."""

    def __init__(self, context: SparkContext, np: int, title: str) -> None:
        self.hosts: tuple[str, ...] = ()
        """What the tasks are: the executor of each host, as Spark's messages name it."""
        self.slots = 0
        """How many tasks each of them has."""
        self.ended_by: str | None = None
        """Why Spark has ended the stage before its job had ended; None if it has not."""
        self._context = context
        self._np = np
        self._title = title
        self._mark = os.urandom(8).hex()
        self._secret = os.urandom(SECRET_BYTES).hex()
        self._group = f"horovod-runner-{self._mark}"
        host = context.getConf().get("spark.driver.host") or "127.0.0.1"
        try:
            self._door = socket.create_server((socket.gethostbyname(host), 0), backlog=256)
        except OSError as error:
            what = f"spark.driver.host is {host}, an address at which this machine cannot listen: {error}"
            raise BackendError(f"{what}; set it to the one by which executors reach the driver") from None
        self._address: tuple[str, int] = self._door.getsockname()
        self._lock = threading.Lock()
        self._job: LocalJob | None = None
        self._is_over, self._over = socket.socketpair()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Submit it, and wait until all tasks run. Raises BackendError."""
        from pyspark import InheritableThread

        self._thread = InheritableThread(target=self._run, daemon=True)
        self._thread.start()
        found = self._placement()
        self.hosts = tuple(host["name"] for host in found)
        self.slots = len(found[0]["tasks"])

    def supervise(self, plan: Plan) -> LocalJob:
        """Start the supervisor of the plan on this machine; the tasks keep its hosts. Raises EstimatorError."""
        from ..ssh.on_host.start import start_with_pool

        machines = [{"name": f"machine-{number}", "at": at} for number, at in enumerate(self.hosts, 1)]
        pool = {"secret": self._secret, "machines": machines, "supervisor_at": "the driver's machine"}
        job = start_with_pool(plan, self._door, pool)
        self._door.close()
        with self._lock:
            self._job = job
            is_late = self.ended_by is not None
        if is_late:
            job.stop()
        return job

    def close(self) -> None:
        """Wait for the tasks, which end after their job; those that do not, Spark ends."""
        self._door.close()
        if self._thread is not None:
            if self._job is not None and self.ended_by is None:
                self._thread.join(LEAVE_SECONDS)
            if self._thread.is_alive():
                with suppress(Exception):  # a context that was stopped meanwhile has ended them, too
                    self._context.cancelJobGroup(self._group)
                self._thread.join(LEAVE_SECONDS)
        self._over.close()
        self._is_over.close()

    def _run(self) -> None:
        from pyspark import cloudpickle

        from ..ssh.session.software import archive

        try:
            cloudpickle.register_pickle_by_value(on_executor)  # type: ignore[no-untyped-call]
            self._context.setJobGroup(self._group, f"HorovodRunner(np={self._np}): {self._title}")
            software = self._context.broadcast(archive())
            program = Path(launcher.__file__).read_text(encoding="utf-8")
            given = {
                "door": self._address,
                "secret": self._secret,
                "mark": self._mark,
                "launcher": program,
            }
            tasks = self._context.parallelize(range(self._np), self._np).barrier()
            said = tasks.mapPartitions(on_executor.work(given, software)).collect()
            self._ended(self._unheard() if on_executor.UNHEARD in said else None)
            software.destroy()
        except Exception as error:  # what py4j makes of what Spark says
            self._ended(_words(error))

    def _unheard(self) -> str:
        host, port = self._address
        hint = "let them connect to any port of the driver, or set spark.driver.host to where they reach it"
        return f"its executors cannot connect to the driver at {host}:{port}; {hint}"

    def _ended(self, why: str | None) -> None:
        with self._lock:
            self.ended_by = why
            job = self._job
        with suppress(OSError):
            self._over.send(b"\0")
        if job is None or why is None:
            return
        # A host that is lost with its executor says more than one that is stopped.
        if _FAILURE in why and job.wait(LOST_SECONDS).is_final:
            return
        with suppress(BackendError):
            job.stop()

    def _placement(self) -> list[dict[str, Any]]:
        """What the first task says. Raises BackendError where the stage ends before."""
        is_told = False
        while True:
            ready, _, _ = select.select([self._door, self._is_over], [], [], None if is_told else BUSY_SECONDS)
            if self._is_over in ready:
                raise BackendError(f"Spark has not started the {self._np} tasks: {self.ended_by}")
            if not ready:
                is_told = True
                print(f"waiting for Spark to start {self._np} tasks at once", file=sys.stderr)
            elif (found := self._heard()) is not None:
                return found

    def _heard(self) -> list[dict[str, Any]] | None:
        """What somebody says who has connected; None if that was not the first task."""
        sock, _ = self._door.accept()
        with sock, suppress(OSError, ValueError):
            sock.settimeout(READ_SECONDS)
            with sock.makefile("rb") as file:
                given, _, text = file.readline(_MOST).decode().rstrip("\n").partition(" ")
            if hmac.compare_digest(given.encode(), on_executor.proof(self._secret, text).encode()):
                found: list[dict[str, Any]] = json.loads(text)
                sock.sendall(on_executor.GO)
                return found
        return None


def _words(error: Exception) -> str:
    """The first line of what Spark says, without what Java was doing meanwhile."""
    told = getattr(error, "java_exception", None)
    text = str(told.getMessage()) if told is not None else str(error)
    return text.strip().partition("\n")[0] or type(error).__name__
