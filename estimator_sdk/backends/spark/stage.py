"""The barrier stage whose tasks keep a job's hosts, as the driver sees it."""

from __future__ import annotations

import hmac
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract.names import SECRET_BYTES

from ...errors import BackendError, EstimatorError
from ...values.spark_process import words_of
from . import launcher, on_executor

if TYPE_CHECKING:
    from pyspark import SparkContext

    from ...plan.plan import Plan
    from ..supervised.job import LocalJob
    from .session import Tasks

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
"""In Spark's words where a task was lost or has failed."""
_CURRENT: ContextVar[Stage] = ContextVar("stage")


def current() -> Stage | None:
    """The stage that is there for the job which is about to be started; None outside of one."""
    return _CURRENT.get(None)


@contextmanager
def started(context: SparkContext, tasks: Tasks, title: str) -> Iterator[Stage]:
    """A stage of such tasks, once all of them are there; it has ended when the block is left.

    Raises BackendError where Spark does not start them.
    """
    stage = Stage(context, tasks, title)
    token = _CURRENT.set(stage)
    try:
        stage.start()
        yield stage
    finally:
        _CURRENT.reset(token)
        stage.close()


def run_apart(context: SparkContext, tasks: Tasks, plan: Plan) -> LocalJob:
    """Start the plan's hosts on a stage of such tasks, which ends with the job, and return.

    Raises EstimatorError, with nothing left running, where Spark does not start them.
    """
    stage = Stage(context, tasks, plan.job_name)
    try:
        stage.start()
        job = stage.supervise(plan)
    except BaseException:
        stage.close()
        raise
    threading.Thread(target=stage.close_after, args=(plan.job_name,), daemon=True).start()
    return job


class Stage:
    """One stage, whose Spark job runs in a thread of its own."""

    def __init__(self, context: SparkContext, tasks: Tasks, title: str) -> None:
        self.hosts: tuple[str, ...] = ()
        """What the tasks are: the executor of each host, as Spark's messages name it."""
        self.slots = 0
        """How many tasks each of them has."""
        self.ended_by: str | None = None
        """Why Spark has ended the stage before its job had ended; None if it has not."""
        self._context = context
        self._tasks = tasks
        self._title = title
        self._is_apart = False
        """Whether nobody waits for it who would say why it has ended."""
        self._mark = os.urandom(8).hex()
        self._secret = os.urandom(SECRET_BYTES).hex()
        self._tag = f"estimator-{self._mark}"
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

    def close_after(self, job_name: str) -> None:
        """As `close`, once the job has ended, or is gone."""
        from ..supervised.job import attach

        self._is_apart = True
        with suppress(EstimatorError):
            attach(job_name).wait()
        self.close()

    def close(self) -> None:
        """Wait for the tasks, which end after their job; those that do not, Spark ends."""
        self._door.close()
        if self._thread is not None:
            if self._job is not None and self.ended_by is None:
                self._thread.join(LEAVE_SECONDS)
            if self._thread.is_alive():
                with suppress(Exception):  # a context that was stopped meanwhile has ended them, too
                    self._context.cancelJobsWithTag(self._tag)
                self._thread.join(LEAVE_SECONDS)
        self._over.close()
        self._is_over.close()

    def _run(self) -> None:
        from pyspark import cloudpickle

        from ..ssh.session.software import archive

        try:
            cloudpickle.register_pickle_by_value(on_executor)  # type: ignore[no-untyped-call]
            # The group stays that of the caller, who can cancel it.
            self._context.addJobTag(self._tag)
            self._context.setJobDescription(f"estimator: {self._title}")
            software = self._context.broadcast(archive())
            program = Path(launcher.__file__).read_text(encoding="utf-8")
            given = {
                "door": self._address,
                "secret": self._secret,
                "mark": self._mark,
                "launcher": program,
                "tasks": self._tasks.of_each_host,
            }
            numbers = self._context.parallelize(range(self._tasks.number), self._tasks.number)
            if (profile := self._tasks.profile(self._context)) is not None:
                numbers = numbers.withResources(profile)
            said = numbers.barrier().mapPartitions(on_executor.work(given, software)).collect()
            self._ended(self._failed(said))
            software.destroy()
        except Exception as error:  # what py4j makes of what Spark says
            self._ended(words_of(error), _FAILURE in str(error))

    def _failed(self, said: list[str]) -> str | None:
        """Why the tasks have ended without a job, as they have said it; None if they had one."""
        no_room = next((each for each in said if each.startswith(on_executor.NO_ROOM)), None)
        if no_room is not None:
            is_fixed = f"{on_executor.common(self._mark)}: " in no_room
            hint = "" if is_fixed else ", or give executors another folder with spark.executorEnv.TMPDIR"
            return f"an executor cannot have a host, {no_room.removeprefix(on_executor.NO_ROOM)}; make room there{hint}"
        if on_executor.UNHEARD not in said:
            return None
        host, port = self._address
        hint = "let them connect to any port of the driver, or set spark.driver.host to where they reach it"
        return f"its executors cannot connect to the driver at {host}:{port}; {hint}"

    def _ended(self, why: str | None, has_failed: bool = False) -> None:
        """`has_failed`: whether a task was lost or has failed; else somebody has cancelled the job."""
        with self._lock:
            if has_failed and self._job is None:
                why = f"{why}; call it again once Spark has an executor in its place"
            self.ended_by = why
            job = self._job
        with suppress(OSError):
            self._over.send(b"\0")
        if job is None or why is None:
            return
        try:
            # A host that is lost with its executor says more than one that is stopped.
            if job.wait(LOST_SECONDS if has_failed else 0).is_final:
                return
            job.stop()
        except EstimatorError:  # it was removed
            return
        if self._is_apart:
            print(f"Spark has ended the tasks of {self._title}, which is stopped: {why}", file=sys.stderr)

    def _placement(self) -> list[dict[str, Any]]:
        """What the first task says. Raises BackendError where the stage ends before."""
        is_told = False
        while True:
            ready, _, _ = select.select([self._door, self._is_over], [], [], None if is_told else BUSY_SECONDS)
            if self._is_over in ready:
                raise BackendError(f"Spark has not started the {self._tasks.number} tasks: {self.ended_by}")
            if not ready:
                is_told = True
                print(f"waiting for Spark to start {self._tasks.number} tasks at once", file=sys.stderr)
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
