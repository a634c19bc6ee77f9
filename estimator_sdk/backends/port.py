"""The port of the backends: what a backend offers, and what it offers for each job that it has started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent
    from estimator_container.failures.verdict import Verdict
    from estimator_container.logs.lines import Block, Line

    from ..plan.plan import Plan
    from ..spec.job_document import JobDocument
    from .status import AttemptRecord, Status

OnEvent = Callable[[str, "AnyEvent"], None]
"""Called with the name of a host, or "" for the job as a whole, and what happened there."""
OnOpenLine = Callable[["Line"], None]
"""Called with an unfinished line, as `LineAssembler.news` returns it, whenever it has grown."""


class State(Protocol):
    """What is known about a job at one moment."""

    @property
    def name(self) -> str:
        """The job's name."""

    @property
    def backend(self) -> str:
        """The name of the backend that runs the job."""

    @property
    def status(self) -> Status:
        """How far the job is, in the words of SageMaker's TrainingJobStatus."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts, the first one first."""

    @property
    def created(self) -> float | None:
        """When the job was created, in seconds since 1970; None if this is not known."""

    @property
    def ended(self) -> float | None:
        """When the job ended, in seconds since 1970; None while it runs."""

    @property
    def attempts(self) -> tuple[AttemptRecord, ...]:
        """The attempts that have begun, the first one first."""

    @property
    def reason(self) -> str:
        """Why the job was stopped, or why nobody knows whether it goes on; else empty."""

    @property
    def verdict(self) -> Verdict | None:
        """Why the job failed; None if it did not."""

    @property
    def model_data(self) -> str | None:
        """The URI of the model; None until it is written."""

    @property
    def output(self) -> str:
        """The URI below which the job's archives are; empty until they are written."""

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""


class Summary(NamedTuple):
    """What a list shows of a job: a tuple, because a list may be long."""

    name: str
    status: Status
    backend: str
    hosts: tuple[str, ...]
    created: float | None
    """In seconds since 1970, as `ended`."""
    ended: float | None

    @classmethod
    def from_state(cls, state: State) -> Summary:
        """The summary of a job in this state."""
        return cls(state.name, state.status, state.backend, state.hosts, state.created, state.ended)


class StartedJob(Protocol):
    """A job that was started, seen from any process."""

    @property
    def name(self) -> str:
        """The job's name, which is unique on its backend."""

    @property
    def path(self) -> Path:
        """The folder in which this machine keeps the job. Raises EstimatorError for a job that runs elsewhere."""

    def record(self) -> State:
        """The state of the job now."""

    def request(self) -> Mapping[str, Any]:
        """The job as a CreateTrainingJob document, possibly with more members; secrets may be hidden."""

    def wait(self, timeout: float | None = None) -> State:
        """Wait for the end of the job, at most `timeout` seconds; returns the state then."""

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """The job's log lines: those written so far, or with `follow` all until the job has ended.

        While following, a backend that can do so calls `on_open_line` for lines that grow; the blocks contain their
        bytes once they have ended.
        """

    def log_files(self) -> list[Path]:
        """The logs as files on this machine; empty for a job that runs elsewhere."""

    def stop(self) -> None:
        """Ask the job to stop, and return; nothing happens if it has ended."""

    def summary(self) -> Summary:
        """What a list shows of the job."""

    def delete(self) -> None:
        """Remove everything that is kept of the job where it ran; what it wrote to a store stays there.

        Raises EstimatorError for a job that has not ended, without removing anything.
        """


class Capabilities(NamedTuple):
    """What a backend can do, so that nobody needs to ask for its name."""

    is_remote: bool = False
    """Its jobs run at a service, which is queried only if no other backend has the job, or if it is named."""
    is_scheduled: bool = False
    """Its hosts are nodes that a scheduler grants, of the instance types in `instances.SCHEDULED`."""
    is_supervised: bool = False
    """Its jobs have one of our supervisors and a folder in the user's home, where anyone can find them."""
    has_images: bool = False
    """If a job names no image, its hosts use one of ours."""
    has_limits: bool = False
    """A host can be held to so many CPUs and so much memory, as `cpus` and `memory` say."""
    has_spares: bool = False
    """It can keep more machines ready than a job has hosts, as `spare_hosts` says."""
    has_pool: bool = False
    """Its hosts are machines that the job names, as `hosts` and `hostfile` say."""
    has_executors: bool = False
    """Its hosts are tasks of a session in the process that starts the job, as `instances.ON_EXECUTORS` asks for."""
    is_this_environment: bool = False
    """Scripts run in the Python environment that calls `fit()`."""


class Finding(NamedTuple):
    """The result of looking for one thing that jobs need."""

    what: str
    is_there: bool
    detail: str
    """The version or location if it is there, else what is wrong."""
    fix: str
    """The command that installs it; empty if it is there."""
    purpose: str | None = None
    """What it is for, such as `docker`; None if every job needs it."""


class Missing(Exception):
    """Something that jobs need is missing; `fix` is the command that installs it."""

    def __init__(self, detail: str, fix: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = fix


Check = tuple[str, Callable[[], str]]
"""Something that jobs need, and a function that returns its version or location, or raises Missing."""


def findings(purpose: str | None, checks: Iterable[Check]) -> Iterator[Finding]:
    """Look for each thing, one after the other, because some take a moment."""
    for what, look in checks:
        try:
            yield Finding(what, True, look(), "", purpose)
        except Missing as missing:
            yield Finding(what, False, missing.detail, missing.fix, purpose)


@runtime_checkable
class Probes(Protocol):
    """A backend that can look at what machines have that only a job of its reaches."""

    def probe(self) -> Iterable[Finding]:
        """Run a small job, and say what it found; it leaves nothing."""


@runtime_checkable
class RecordsWindows(Protocol):
    """A job that runs, whose hosts can be asked to record a window of their timeline.

    What they record is beside their logs, in `Layout.timelines`; see `host.windows` of the toolkit.
    """

    def ask_for_window(self, request: str) -> None:
        """Have every host find the request, as `Layout.timeline_request`.

        Raises EstimatorError where one is there that has not begun, or where this one cannot be written.
        """

    def withdraw_window(self) -> None:
        """Take back a request from the hosts that have not begun; nothing happens where there is none."""

    def add_output(self, name: str, text: str) -> Path:
        """Put a file among the outputs of the first host, in the place of one of that name.

        Returns where it is on this machine. Raises OSError, and BackendError where the host is not reached.
        """


@runtime_checkable
class KeepsNotes(Protocol):
    """A backend whose jobs run at a service, and which notes those that were submitted from here in the home."""

    def submitted(self) -> Sequence[StartedJob]:
        """These jobs, in no order; `summary()` of each is what was last heard of it. Asks nobody."""


class Backend(Protocol):
    """Runs jobs. Other packages can provide a backend through the entry point group `estimator_sdk.backends`."""

    name: str
    capabilities: Capabilities

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job without starting anything. Raises InvalidArgument for what this backend cannot run."""

    def start(self, plan: Plan) -> StartedJob:
        """Upload the code if the plan says so, start exactly what the plan says, and return at once."""

    def attach(self, name: str) -> StartedJob:
        """The job with that name. Raises JobNotFound, whose text may be empty if there is nothing to add."""

    def list(self, limit: int | None = None) -> Sequence[StartedJob]:
        """The backend's jobs, the newest first, at most `limit`. Raises BackendError if a service does not answer."""

    def check(self) -> Iterable[Finding]:
        """Look for what the backend's jobs need on this machine."""
