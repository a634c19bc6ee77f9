"""What DescribeTrainingJob says of a job, as the state and the verdict that every backend gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ..status import FINAL, AttemptRecord, Status

# "SecondaryStatus" in DescribeTrainingJob's API reference.
_REASONS = {
    "MaxRuntimeExceeded": "it ran for longer than max_run",
    "MaxWaitTimeExceeded": "it waited and ran for longer than max_wait",
    "Interrupted": "its spot instances were taken away",
    "Stopped": "stop() or StopTrainingJob was called",
    "Stopping": "it was asked to stop",
}
_KINDS = {"AlgorithmError": Kind.EXIT_CODE, "ClientError": Kind.CONFIGURATION}
_PREFIX = re.compile(r"(\w+Error|\w+Failure): ?")
_EXIT_CODE = re.compile(r",? ?[Ee]xit ?[Cc]ode:? (\d+)")
# How the toolkit begins the sentence that it leaves for the platform.
_CULPRIT = re.compile(
    r"(?:rank (?P<rank>\d+)|the script) on (?P<host>algo-\d+) (?:exited with code (?P<code>\d+)|was killed)"
)


@dataclass(frozen=True)
class ServiceState:
    """The state of a job of the service at one moment."""

    name: str
    status: Status
    hosts: tuple[str, ...]
    reason: str
    verdict: Verdict | None
    model_data: str | None
    attempts: tuple[AttemptRecord, ...]
    """At most one: the service does not tell of those before the last."""
    transitions: tuple[tuple[str, str], ...]
    """The secondary statuses so far, and what the service says of each."""
    ended: float | None
    """Seconds since 1970."""
    created: float | None = None
    """The same."""
    output: str = ""
    """The URI below which the service puts the job's archives."""
    backend: str = "sagemaker"

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""
        return self.status in FINAL

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> ServiceState:
        """The state that an answer of DescribeTrainingJob describes."""
        status: Status = description["TrainingJobStatus"]
        ended = description.get("TrainingEndTime") or (description.get("LastModifiedTime") if status in FINAL else None)
        artifacts = description.get("ModelArtifacts") or {}
        began = description.get("TrainingStartTime")
        verdict = verdict_of(description.get("FailureReason") or "").masked() if status == "Failed" else None
        seconds = ended.timestamp() if ended is not None else None
        return cls(
            name=description["TrainingJobName"],
            status=status,
            hosts=hosts_of(description.get("ResourceConfig") or {}),
            reason=_REASONS.get(description.get("SecondaryStatus", ""), "")
            if status in ("Stopping", "Stopped")
            else "",
            verdict=verdict,
            model_data=artifacts.get("S3ModelArtifacts") if status in ("Completed", "Stopped") else None,
            attempts=(AttemptRecord(1, began.timestamp(), seconds, verdict),) if began is not None else (),
            transitions=tuple(
                (each["Status"], each.get("StatusMessage") or "")
                for each in description.get("SecondaryStatusTransitions") or ()
            ),
            ended=seconds,
            created=description["CreationTime"].timestamp() if "CreationTime" in description else None,
            output=output_of(description),
        )


def output_of(description: Mapping[str, Any]) -> str:
    """The URI of the folder that the service keeps a job's archives in; "" where the description does not say it."""
    path = (description.get("OutputDataConfig") or {}).get("S3OutputPath") or ""
    return f"{path.rstrip('/')}/{description['TrainingJobName']}/output" if path else ""


def hosts_of(resources: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that the service gives to the instances of a `ResourceConfig`."""
    groups = resources.get("InstanceGroups") or ()
    count = sum(group["InstanceCount"] for group in groups) or resources.get("InstanceCount") or 1
    return tuple(f"algo-{index + 1}" for index in range(count))


def verdict_of(failure: str) -> Verdict:
    """The verdict that a `FailureReason` tells: whose fault it was, and the toolkit's own sentence if it is there.

    >>> verdict_of("AlgorithmError: rank 3 on algo-2 exited with code 1: no digit, exit code: 1").rank
    3
    """
    prefix = _PREFIX.match(failure)
    words = failure[prefix.end() :] if prefix else failure
    outer = list(_EXIT_CODE.finditer(words))
    # The service adds the container's own exit code to what the toolkit said.
    if outer and outer[-1].end() == len(words.rstrip()):
        words = words[: outer[-1].start()]
    message, _, detail = words.strip().partition("\n")
    kind = _KINDS.get(prefix[1] if prefix else "", Kind.PLATFORM)
    for known in Kind:
        if detail.endswith(known.what_to_try):  # our toolkit's own words, which tell more than the service's
            kind, detail = known, detail.removesuffix(known.what_to_try).rstrip()
            break
    code = int(outer[-1][1]) if outer else None
    culprit = _CULPRIT.match(message)
    if culprit is not None:
        rank, own = (int(number) if number else None for number in (culprit["rank"], culprit["code"]))
        return Verdict(kind, message, culprit["host"], rank, own or code, detail=detail.strip())
    said = message or "the service gives no reason"
    if prefix is not None and kind is not Kind.EXIT_CODE:
        said = f"{prefix[1]}: {said}"
    return Verdict(kind, said, None, None, code, detail=detail.strip())
