"""What a `Job` asks of whatever runs it: the port that each kind of backend implements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict
    from estimator_container.logs.lines import Block, Line

    from .status import AttemptRecord, Status

OnEvent = Callable[[str, dict[str, Any]], None]
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
