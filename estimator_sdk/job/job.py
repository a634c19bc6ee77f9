"""A job that was started: its state, its logs, its outputs, from any process."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EstimatorError, JobFailed
from ..telemetry.metrics import Metric, metric_definitions, values_in
from ..values.home import check_umask

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict
    from estimator_container.logs.lines import Line
    from estimator_container.storage import Progress

    from ..backends.port import OnOpenLine, StartedJob
    from ..backends.status import AttemptRecord, Status
    from ..telemetry.curves import Curves
    from ..telemetry.machines import Measurements
    from .diagnosis.diagnosis import Diagnosis
    from .ledger import Ledger


class Job:
    """A training job. `Estimator.fit()` returns one, and `Job.attach` finds one by its name."""

    def __init__(self, started: StartedJob) -> None:
        self._started = started

    @classmethod
    def attach(cls, name: str) -> Job:
        """The job with that name, whichever process started it: one on this machine, else one on SageMaker.

        The region of a job that was submitted from here is known; any other job is looked up in the configured region,
        if there are credentials. Raises InvalidArgument for what is not a name, JobNotFound, and EstimatorError for a
        job on this machine whose record is damaged.
        """
        from .. import backends
        from ..values.job_name import checked

        return cls(backends.attach(checked(name, "name")))

    @property
    def started(self) -> StartedJob:
        """The job as its backend has it."""
        return self._started

    @property
    def name(self) -> str:
        """The job's name, by which `Job.attach` finds it."""
        return self._started.name

    @property
    def backend(self) -> str:
        """The name of the backend that runs the job: `process`, `docker`, …"""
        return self._started.record().backend

    @property
    def status(self) -> Status:
        """`InProgress`, `Completed`, `Failed`, `Stopping` or `Stopped`, as SageMaker's TrainingJobStatus."""
        return self._started.record().status

    @property
    def folder(self) -> Path:
        """Where the job's plan, logs and hosts are on this machine.

        Raises EstimatorError for a job that runs elsewhere.
        """
        return self._started.path

    @property
    def log_files(self) -> list[Path]:
        """The framed logs, one per host and attempt; `logs()` reads them. Empty for a job that runs elsewhere."""
        return self._started.log_files()

    @property
    def model_data(self) -> str | None:
        """The URI of `model.tar.gz`, or of a folder of files; None until it exists, and for a failed job."""
        return self._started.record().model_data

    @property
    def output_data(self) -> str | None:
        """The URI of `output.tar.gz`, which a failed job has too; None while the job runs."""
        record = self._started.record()
        return f"{record.output}/output.tar.gz" if record.is_final and record.output else None

    @property
    def reason(self) -> str:
        """Why the job was stopped, and which checkpoints did not reach their store; empty if neither applies."""
        return self._started.record().reason

    @property
    def verdict(self) -> Verdict | None:
        """Why the job failed; None if it did not."""
        return self._started.record().verdict

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, the first one first."""
        return list(self._started.record().hosts)

    @property
    def created(self) -> float | None:
        """When the job was created, in seconds since 1970; None if this is not known."""
        return self._started.record().created

    @property
    def ended(self) -> float | None:
        """When the job ended, in seconds since 1970; None while it runs."""
        return self._started.record().ended

    @property
    def request(self) -> Mapping[str, Any]:
        """The job as a CreateTrainingJob document, possibly with more members; values of secrets are hidden."""
        from ..spec import masking

        return masking.in_document(self._started.request())

    @property
    def attempts(self) -> list[AttemptRecord]:
        """The attempts that have begun, the first one first: when they ran, and why they failed."""
        return list(self._started.record().attempts)

    def ledger(self) -> Ledger:
        """Where the job's time went: how much of it in training steps that survive, and what took the rest.

        Its log is read for that. Raises EstimatorError for a job that runs elsewhere.
        """
        from . import accounting

        return accounting.of_job(self._started)

    def diagnose(self) -> Diagnosis:
        """Why its training steps take as long as they do, so far: where their time goes on each rank, and what to try.

        `print` shows it as `estimator doctor JOB` does. Its log is read for that. Raises EstimatorError for a job that
        runs elsewhere.
        """
        from .diagnosis import diagnosis

        return diagnosis.make(self._started)

    def wait(self, timeout: float | None = None) -> Status:
        """Wait for the end of the job, at most `timeout` seconds, and return the status then.

        Raises JobFailed if the job has failed, and InvalidArgument for a timeout that is not a number.
        """
        from ..values.conform import conform

        conform(float | None, timeout, "timeout")
        record = self._started.wait(timeout)
        if record.status == "Failed" and record.verdict is not None:
            raise JobFailed(record.name, record.verdict)
        return record.status

    def stop(self) -> None:
        """Ask the job to stop: SIGTERM to every rank, the grace period, then SIGKILL. Returns at once.

        Raises BackendError where what runs the job cannot be asked.
        """
        self._started.stop()

    def delete(self) -> None:
        """Remove everything that is kept of a finished job: its logs, its record, and its outputs on this machine.

        What it wrote to a store, such as below `output_path` or `checkpoint_s3_uri`, stays there. Raises EstimatorError
        for a job that has not ended, without removing anything.
        """
        self._started.delete()

    def why(self) -> str:
        """Why the job ended as it did, why its earlier attempts failed, and which hosts did so again and again."""
        from . import explanation

        return explanation.why(self._started.record())

    def logs(
        self,
        rank: int | None = None,
        host: str | None = None,
        stream: str | None = None,
        follow: bool = False,
    ) -> Iterator[Line]:
        """The job's log lines, merged by time; `print(line.tagged())` shows one as `fit()` does.

        `rank`, `host` and `stream` (`stdout`, `stderr`, `toolkit`) select lines. With `follow` new lines arrive as
        they are written, until the job has ended. The `data` of the lines of one rank and stream, joined, are the
        bytes that it wrote: a line longer than 2 MiB, or one longer than 64 KiB that is redrawn with `\\r` like a
        progress bar, arrives in pieces, of which only the last ends in a newline. Raises InvalidArgument for a stream
        or host that the job does not have, and for a rank that is not a number; one that wrote nothing has no lines.
        """
        return self._lines(rank, host, stream, follow)

    def _lines(
        self,
        rank: int | None,
        host: str | None,
        stream: str | None,
        follow: bool,
        on_open_line: OnOpenLine | None = None,
    ) -> Iterator[Line]:
        from .log_selection import LogSelection

        selection = LogSelection.checked(self._started.record().hosts, rank, host, stream)
        blocks = filter(selection.has, self._started.blocks(follow, None, on_open_line))
        return (line for block in blocks for line in block.lines())

    def metrics(self) -> list[Metric]:
        """Every value that the job's metric definitions find in its log, in order of time."""
        definitions = metric_definitions(self._started)
        lines = (line for block in self._started.blocks(follow=False) for line in block.lines())
        found = ((line, values_in(line, definitions)) for line in lines)
        return [Metric(name, value, line.time_ns / 1e9, line.rank) for line, values in found for name, value in values]

    def curves(self, points: int = 512) -> Curves:
        """The metrics of the model so far: by rank, step and time, in at most `points` points each, 2 or more.

        Values are those that the script logs by `estimator_container.metrics.log`, that the metric definitions find,
        that stand alone in a line as `name: value`, and those of Keras. `refresh()` of what is returned reads only
        what is new, and `parts(since=cursor)` returns only what has changed.
        """
        from ..telemetry.curves import Curves
        from . import asked

        asked.check_whole("points", points, 2)
        curves = Curves(self._started, points)
        curves.refresh()
        return curves

    def machines(
        self,
        metrics: Collection[str] | None = None,
        hosts: Collection[str] | None = None,
        ranks: Collection[int] | None = None,
        *,
        start: float | None = None,
        end: float | None = None,
        points: int = 300,
        resolution: float | None = None,
    ) -> Measurements:
        """What the hosts measured of themselves and their ranks: CPU, memory, disks, network, GPUs.

        None is everything there is. `start` and `end` are seconds since 1970; a series has at most about `points`
        points, or one in each `resolution` seconds. Raises EstimatorError for a job that runs elsewhere, and
        InvalidArgument for a metric or a host that there is not.
        """
        from ..telemetry import machines
        from . import asked

        question = machines.Question(metrics, hosts, ranks, start, end, points, resolution)
        asked.check_measured(question, self.hosts)
        return machines.read(self._started, question)

    def download(self, path: str | Path = ".", progress: Progress | None = None) -> Path:
        """Unpack the model into a folder, which is created if necessary, and return the folder.

        `progress` is called with the bytes and the objects that have arrived so far, from another thread.

        Raises EstimatorError if the job has no model (yet), or if it cannot be read from its store, InvalidArgument
        where the folder cannot be made, and OSError where nothing can be written there.
        """
        uri = self.model_data
        if uri is None:
            hint = "" if self._started.record().is_final else "; wait for it to complete"
            raise EstimatorError(f"the job {self.name} is {self.status} and has no model{hint}")
        from . import asked, model_files

        check_umask()
        target = asked.folder(path)
        model_files.fetch(uri, target, progress)
        return target

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.status})"

    def __str__(self) -> str:
        """The job in a few lines: state, phases, ranks, metrics, links."""
        from ..display import snapshot, text

        return text.text(snapshot.take(self._started))

    def _repr_html_(self) -> str:
        """The job as a notebook shows it at this moment."""
        from ..display import page, snapshot

        return page.html(snapshot.take(self._started))

    def _ipython_display_(self) -> None:
        """Follow the job to its end in a notebook's cell; in a terminal, print it."""
        from ..display import notebook

        if notebook.is_here():
            from ..display import cell
            from . import accounting

            cell.show(self._started, accounting.goodput)
        else:
            print(self)
