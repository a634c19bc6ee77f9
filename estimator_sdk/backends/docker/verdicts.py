"""Why a job on containers fails that has nothing to say of it itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

if TYPE_CHECKING:
    from docker import DockerClient

    from ...plan.plan import Plan

_CANNOT_RUN = re.compile(r"\bexec\b|executable file not found")
"""What the OCI runtime says of an entrypoint."""


def engine_lost(client: DockerClient, meanwhile: str) -> str | None:
    """What to say when the engine no longer answers; None when it is there after all."""
    try:
        client.ping()
    except Exception:
        return (
            f"the Docker engine ({client.api.base_url}) stopped answering while {meanwhile}; start it again, and run "
            "the job again: what is left of this one is removed as soon as the engine answers"
        )
    return None


def engine_came_back(host: str) -> str:
    """What to say of a host that has ended because the engine was away."""
    return f"the Docker engine was started again while {host} ran, which ended {host}; run the job again"


def container_lost(host: str, error: Exception) -> str | None:
    """What to say where the engine has answered that there is no such container; None for any other error."""
    from docker.errors import NotFound

    return f"the Docker engine has lost the container of {host}: {error}" if isinstance(error, NotFound) else None


def cannot_run(words: str) -> bool:
    """Whether the engine says that it could not start the program of a container."""
    return _CANNOT_RUN.search(words) is not None


def refused(plan: Plan, words: str) -> Verdict:
    """The engine made or started no container, and said this."""
    if cannot_run(words):
        return Verdict(Kind.IMAGE, f"no container of {plan.image} could start: {words}")
    return Verdict(Kind.PLATFORM, f"the Docker engine made no container of {plan.job_name}: {words}")


def out_of_memory(plan: Plan, host: str) -> Verdict:
    """The first process of a host was killed because it had no memory left."""
    message = f"{host} ran out of the {plan.memory:g} GiB that memory= gives each host; raise it"
    return Verdict(Kind.OUT_OF_MEMORY, message, host)
