"""The port of the backends: what runs jobs, and what a `Job` asks of whatever runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from estimator_container.contract.events import AnyEvent
    from estimator_container.failures.verdict import Verdict
    from estimator_container.logs.lines import Block, Line

    from ..plan.plan import Plan
    from ..spec.job_document import JobDocument
    from .status import AttemptRecord, Status

OnEvent = Callable[[str, "AnyEvent"], None]
"""Called with the name of a host, or "" for the job as a whole, and what happened there."""
OnOpenLine = Callable[["Line"], None]
"""Called with a line that has no end yet, as `LineAssembler.news` gives it, whenever it has grown."""


class State(Protocol):
    """What is known of a job at one moment."""

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def status(self) -> Status: ...

    @property
    def hosts(self) -> tuple[str, ...]: ...

    @property
    def created(self) -> float | None:
        """When it was asked for, in seconds since 1970, as `ended`; None where nobody says."""

    @property
    def ended(self) -> float | None: ...

    @property
    def attempts(self) -> tuple[AttemptRecord, ...]:
        """Those that have begun, from the first."""

    @property
    def reason(self) -> str:
        """Why it was stopped, where it was."""

    @property
    def verdict(self) -> Verdict | None:
        """Why it failed, where it did."""

    @property
    def model_data(self) -> str | None:
        """The URI of the model, once it is written."""

    @property
    def output(self) -> str:
        """The URI below which the job's archives are, once they are written."""

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""


class Summary(NamedTuple):
    """What a list shows of a job: a tuple, for a list may be long."""

    name: str
    status: Status
    backend: str
    hosts: tuple[str, ...]
    created: float | None
    """In seconds since 1970, as `ended`."""
    ended: float | None

    @classmethod
    def of(cls, state: State) -> Summary:
        """The same, of all that is known of a job."""
        return cls(state.name, state.status, state.backend, state.hosts, state.created, state.ended)


class StartedJob(Protocol):
    """A job that was started, seen from any process."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path:
        """The folder of what this machine keeps of the job. Raises EstimatorError for a job that runs elsewhere."""

    def record(self) -> State:
        """The state of the job now."""

    def request(self) -> Mapping[str, Any]:
        """The job as a CreateTrainingJob document, or with more members than that; secrets may be hidden."""

    def wait(self, timeout: float | None = None) -> State:
        """Wait for the end of the job, at most `timeout` seconds; returns its state then."""

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """The job's log lines: those there are, or with `follow` all until the job has ended.

        While it follows, a backend that can tells `on_open_line` of lines that grow; their bytes come with their end.
        """

    def log_files(self) -> list[Path]:
        """The logs as files of this machine; none for a job that runs elsewhere."""

    def stop(self) -> None:
        """Ask for the end of the job, and return; nothing happens if it has ended."""

    def summary(self) -> Summary:
        """What a list shows of the job."""

    def delete(self) -> None:
        """Remove all that is kept of the job where it ran; what it wrote to a store stays there.

        Raises EstimatorError for a job that has not ended, with nothing removed.
        """


class Capabilities(NamedTuple):
    """What a backend can do, so that nobody needs to ask for its name."""

    is_remote: bool = False
    """Its jobs are at a service, which is asked for them only where none nearer has that name, or it is named."""
    is_supervised: bool = False
    """Its jobs have a supervisor of ours and a folder in the user's home, where they are found without it."""
    has_images: bool = False
    """Where a job names no image, its hosts are made from one of ours."""
    has_limits: bool = False
    """A host can be held to so many CPUs and so much memory, as `cpus` and `memory` say."""
    is_this_environment: bool = False
    """Scripts run in the Python environment of who calls `fit()`."""


class Finding(NamedTuple):
    """One thing that jobs need, which was looked for."""

    what: str
    is_there: bool
    detail: str
    """The version or place of what is there; what is wrong with what is not."""
    fix: str
    """The command that brings it; empty where it is there."""
    purpose: str | None = None
    """What it is for, such as `docker`; None where every job needs it."""


class Missing(Exception):
    """A thing that is not there, and the command that brings it."""

    def __init__(self, detail: str, fix: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = fix


Check = tuple[str, Callable[[], str]]
"""A thing that jobs need, and what looks for it: returns its version or place, or raises Missing."""


def findings(purpose: str | None, checks: Iterable[Check]) -> Iterator[Finding]:
    """Look for each thing, one after the other, for some take a moment."""
    for what, look in checks:
        try:
            yield Finding(what, True, look(), "", purpose)
        except Missing as missing:
            yield Finding(what, False, missing.detail, missing.fix, purpose)


class Backend(Protocol):
    """What runs jobs. A package brings one by the entry point group `estimator_sdk.backends`."""

    name: str
    capabilities: Capabilities

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job, without starting anything. Raises InvalidArgument for what cannot run here."""

    def start(self, plan: Plan) -> StartedJob:
        """Put the code where the plan keeps it, start exactly what the plan says, and return at once."""

    def attach(self, name: str) -> StartedJob:
        """The job of that name. Raises JobNotFound, whose text may be empty where there is nothing to say of it."""

    def list(self, limit: int | None = None) -> Sequence[StartedJob]:
        """Its jobs, the newest first, at most `limit`. Raises BackendError where a service does not answer."""

    def check(self) -> Iterable[Finding]:
        """Look for what its jobs need on this machine."""
