"""A job of the service, seen from any process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from estimator_container.contract.events import ServiceStatus
from estimator_container.logs.lines import Block

from ...errors import BackendError, EstimatorError, JobNotFound
from ..port import OnEvent, OnOpenLine, Summary
from ..status import not_deleted
from . import faults, submitted
from .log_events import GROUP, JobLog
from .service import Service, new_session, region_of
from .state import ServiceState

POLL_SECONDS = 5.0  # between two looks; the service tells nobody by itself
STREAM_SECONDS = 0.1  # the same for each host's log; an account may read 25 a second ("CloudWatch Logs quotas")
SETTLED_SECONDS = 300.0  # after a job's end, when nothing of its log is still on its way


class SageMakerJob:
    """A training job of one region."""

    def __init__(self, name: str, service: Service | Callable[[], Service], heard: Summary | None = None) -> None:
        """A `service` may be made when it is asked; `heard` is what a list shows of the job until then."""
        self.name = name
        self._given = service
        self._heard = heard
        self._last: dict[str, Any] | None = None

    @cached_property
    def _service(self) -> Service:
        return self._given if isinstance(self._given, Service) else self._given()

    @property
    def path(self) -> Path:
        raise EstimatorError(
            f"{self.name} runs on SageMaker in {self._service.region} and has no folder on this machine; its log is in "
            f"CloudWatch, {GROUP}, and logs() reads it"
        )

    def record(self) -> ServiceState:
        """The state of the job now. Raises JobNotFound, and BackendError where the service does not answer."""
        state = ServiceState.from_description(self.request())
        summary = Summary.from_state(state)
        self._heard = summary if self._heard is not None else None
        submitted.remember(summary)
        return state

    def request(self) -> dict[str, Any]:
        """What DescribeTrainingJob says; asked for once more until it is final."""
        if self._last is None or not ServiceState.from_description(self._last).is_final:
            self._last = self._describe()
        return self._last

    def wait(self, timeout: float | None = None) -> ServiceState:
        """Wait for the end of the job, at most `timeout` seconds; returns its state then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (state := self.record()).is_final:
            remaining = POLL_SECONDS if deadline is None else deadline - time.monotonic()
            if remaining <= 0:
                break
            time.sleep(min(remaining, POLL_SECONDS))
        return state

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """The job's log lines: those that have come, or with `follow` all until the job has ended.

        The service has whole lines only, so `on_open_line` is told nothing.
        """
        log = JobLog(self._service, self.name)
        told, was_running = 0, False
        while follow:
            # What has been written by now was written in states that the service tells of after that.
            new = log.new_blocks()
            first = list(islice(new, 1))
            state = self.record()
            told = _tell(on_event, state, told)
            yield from chain(first, new)
            if state.is_final:
                # A job that was seen to run has just ended, whatever the clocks here and there say.
                if was_running or state.ended is None or time.time() - state.ended < SETTLED_SECONDS:
                    yield from log.last_blocks()
                return
            was_running = True
            time.sleep(max(POLL_SECONDS, STREAM_SECONDS * len(state.hosts)))
        if on_event is not None:
            _tell(on_event, self.record(), 0)
        yield from log.new_blocks()

    def log_files(self) -> list[Path]:
        """None are on this machine."""
        return []

    def stop(self) -> None:
        """Ask the service to stop the job; it sends SIGTERM, and after `DEFAULT_STOP_TIMEOUT` SIGKILL."""
        try:
            self._service.call("sagemaker", "stop_training_job", f"stop {self.name}", TrainingJobName=self.name)
        except faults.Refused as error:
            if error.code != "ValidationException" or not self.record().is_final:
                raise

    def summary(self) -> Summary:
        """What a list shows of the job: what was last heard of it, if it comes from a list that asks nobody."""
        return self._heard or Summary.from_state(self.record())

    def delete(self) -> None:
        """Have the service forget the job; what it wrote to S3, and its log, stay. Raises as `stop`."""
        state = self.record()
        if not state.is_final:
            raise not_deleted(self.name, state.status)
        doing = f"delete the job {self.name}"
        self._service.call("sagemaker", "delete_training_job", doing, TrainingJobName=self.name)
        submitted.forget(self.name)

    def _describe(self) -> dict[str, Any]:
        doing = f"look at the job {self.name}"
        try:
            return self._service.call("sagemaker", "describe_training_job", doing, TrainingJobName=self.name)
        except faults.Refused as error:
            if error.code == "ValidationException" and "not f" in error.service_message.lower():
                missing = f"SageMaker in {self._service.region} has no job {self.name!r}"
                note = submitted.unfinished(self.name)
                if note is None:
                    submitted.forget(self.name)
                else:
                    hint = "use the credentials of the account that it is in or, if it was deleted, remove"
                    missing = f"{missing} for this account, though it had not ended when last seen; {hint} {note}"
                raise JobNotFound(missing) from None
            raise


def _tell(on_event: OnEvent | None, state: ServiceState, told: int) -> int:
    """Tell of what the service says that was not told yet; returns how much there is."""
    if on_event is not None:
        for status, message in state.transitions[told:]:
            on_event("", ServiceStatus(status, message))
    return len(state.transitions)


def is_configured() -> bool:
    """Whether a region and credentials are there, and what it takes to use them."""
    try:
        session = new_session()
    except BackendError:  # without botocore
        return False
    from botocore.exceptions import BotoCoreError

    try:
        return bool(region_of(session) and session.get_credentials())
    except (BackendError, BotoCoreError):  # of a profile that is not there, or half of one
        return False
