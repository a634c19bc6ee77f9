"""A job that was started: its state, its logs, its outputs, from any process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EstimatorError, InvalidArgument, JobFailed
from ..telemetry.metrics import Metric, metric_definitions, values_in
from ..values.home import check_umask

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict
    from estimator_container.logs.lines import Block, Line
    from estimator_container.storage import Progress

    from ..backends.port import OnOpenLine, StartedJob, Summary
    from ..backends.status import AttemptRecord, Status

STREAMS = ("stdout", "stderr", "toolkit")


class Job:
    """A training job. `Estimator.fit()` returns one, and `Job.attach` finds one by its name."""

    def __init__(self, started: StartedJob) -> None:
        self._started = started

    @classmethod
    def attach(cls, name: str) -> Job:
        """The job of that name, started by whatever process: one of this machine, else one of SageMaker.

        The region of a job that was submitted from here is known; any other is looked for in the configured region, if
        there are credentials. Raises InvalidArgument for what is not a name, and JobNotFound.
        """
        from .. import backends
        from ..values.job_name import checked

        return cls(backends.attach(checked(name, "name")))

    @property
    def name(self) -> str:
        """The job's name, by which `Job.attach` finds it."""
        return self._started.name

    @property
    def backend(self) -> str:
        """What runs the job: `process`, `docker`, …"""
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
        """The framed logs, one a host and attempt; `logs()` reads them. None for a job that runs elsewhere."""
        return self._started.log_files()

    @property
    def model_data(self) -> str | None:
        """The URI of `model.tar.gz`; None while there is none, and for a job that failed."""
        return self._started.record().model_data

    @property
    def output_data(self) -> str | None:
        """The URI of `output.tar.gz`, which a job that failed has as well; None while it runs."""
        record = self._started.record()
        return f"{record.output}/output.tar.gz" if record.is_final and record.output else None

    @property
    def reason(self) -> str:
        """Why the job was stopped, and what of its checkpoints did not reach their store; empty if neither."""
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
        """When the job was asked for, in seconds since 1970; None where nobody says."""
        return self._started.record().created

    @property
    def ended(self) -> float | None:
        """When the job ended, in seconds since 1970; None as long as it runs."""
        return self._started.record().ended

    @property
    def request(self) -> Mapping[str, Any]:
        """The job as a CreateTrainingJob document, or with more members than that; values of secrets are hidden."""
        from ..spec import masking

        return masking.in_document(self._started.request())

    @property
    def attempts(self) -> list[AttemptRecord]:
        """The attempts that have begun, from the first: when, and why each that failed did."""
        return list(self._started.record().attempts)

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
        """Ask for the end of the job: SIGTERM to every rank, the grace period, then SIGKILL. Returns at once."""
        self._started.stop()

    def delete(self) -> None:
        """Remove all that is kept of the job, which must have ended: its logs, its record, its outputs on this machine.

        What it wrote to a store, such as below `output_path` or `checkpoint_s3_uri`, stays there. Raises EstimatorError
        for a job that has not ended, with nothing removed.
        """
        self._started.delete()

    def why(self) -> str:
        """Why the job ended as it did, in words."""
        record = self._started.record()
        if record.verdict is not None:
            return record.verdict.text()
        return f"{record.name} is {record.status}{f': {record.reason}' if record.reason else ''}\n"

    def logs(
        self,
        rank: int | None = None,
        host: str | None = None,
        stream: str | None = None,
        follow: bool = False,
    ) -> Iterator[Line]:
        """The log lines of the job, merged by time; `print(line.tagged())` shows one as `fit()` does.

        `rank`, `host` and `stream` (`stdout`, `stderr`, `toolkit`) choose among them. With `follow` new lines come as
        they are written, until the job has ended. The `data` of the lines of one rank and stream, joined, are the
        bytes that it wrote: a line longer than 2 MiB, and one longer than 64 KiB that `\\r` draws again and again, as a
        progress bar, comes in pieces, of which only the last ends in a newline. Raises InvalidArgument for a stream or
        host that the job does not have.
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
        self._check_choice(host, stream)
        all_blocks = self._started.blocks(follow, None, on_open_line)
        blocks = (block for block in all_blocks if _chosen(block, rank, host, stream))
        return (line for block in blocks for line in block.lines())

    def metrics(self) -> list[Metric]:
        """Every value that the job's metric definitions find in its log, in the order of time."""
        definitions = metric_definitions(self._started)
        lines = (line for block in self._started.blocks(follow=False) for line in block.lines())
        found = ((line, values_in(line, definitions)) for line in lines)
        return [Metric(name, value, line.time_ns / 1e9, line.rank) for line, values in found for name, value in values]

    def download(self, path: str | Path = ".", progress: Progress | None = None) -> Path:
        """Unpack the model into a folder, which is made, and return it.

        `progress` is called with the bytes and the objects that have come so far, from another thread.

        Raises EstimatorError when the job has no model (yet), and when its store does not hand it over.
        """
        uri = self.model_data
        if uri is None:
            hint = "" if self._started.record().is_final else "; wait for it to complete"
            raise EstimatorError(f"the job {self.name} is {self.status} and has no model{hint}")
        from . import model_files

        check_umask()
        target = Path(path)
        target.mkdir(parents=True, exist_ok=True)
        model_files.fetch(uri, target, progress)
        return target

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.status})"

    def __str__(self) -> str:
        """The job in a few lines: state, phases, ranks, metrics, links."""
        from ..display import snapshot, text

        return text.text(snapshot.take(self._started))

    def _repr_html_(self) -> str:
        """The job as a notebook shows it, at this moment."""
        from ..display import page, snapshot

        return page.html(snapshot.take(self._started))

    def _ipython_display_(self) -> None:
        """In a cell of a notebook the job is followed to its end; in a terminal it is text."""
        from ..display import notebook

        if notebook.is_here():
            from ..display import cell

            cell.show(self._started)
        else:
            print(self)

    def _check_choice(self, host: str | None, stream: str | None) -> None:
        from ..values.naming import suggestion

        hosts = self._started.record().hosts
        for argument, value, known in (("host", host, hosts), ("stream", stream, STREAMS)):
            if value is not None and value not in known:
                raise InvalidArgument(argument, f"{argument} {value!r} is not in this job; {suggestion(value, known)}")


def list_jobs(backend: str | None = None, limit: int | None = None) -> list[Job]:
    """The jobs of this machine, the newest first; with `backend="sagemaker"` those of the configured AWS region.

    `backend` leaves out the jobs of others, and `limit` all but so many of the newest; None is all of this machine's,
    and 100 of SageMaker's. Warns of a job of this machine whose state cannot be understood, and leaves it out.
    Raises InvalidArgument for an unknown backend, and BackendError where SageMaker does not answer.
    """
    return [Job(each) for each in _listed(backend, limit)]


def summaries(backend: str | None = None, limit: int | None = None) -> list[Summary]:
    """What a list shows of the same jobs, without a look at each that has ended long ago. Raises as `list_jobs`."""
    return [each.summary() for each in _listed(backend, limit)]


def _listed(backend: str | None, limit: int | None) -> Sequence[StartedJob]:
    from .. import backends

    return backends.jobs(backend, limit)


def _chosen(block: Block, rank: int | None, host: str | None, stream: str | None) -> bool:
    return (
        (rank is None or block.rank == rank)
        and (host is None or block.host == host)
        and (stream is None or block.stream == stream)
    )
