"""The last lines that each rank of a job wrote."""

from __future__ import annotations

from collections import defaultdict, deque

from estimator_container.logs.masking import in_text

from ...job.job import Job

LINES = 20

Who = tuple[str, int | None]
"""A host and a rank; None where hosts have no ranks."""


def by_rank(job: Job) -> dict[Who, list[str]]:
    """Up to 20 lines each, without the toolkit's own; bytes that are no text are shown escaped, secrets
    hidden where their form tells them: reports are handed on.
    """
    found: dict[Who, deque[str]] = defaultdict(lambda: deque(maxlen=LINES))
    for line in job.logs():
        if line.stream != "toolkit":
            found[line.host, line.rank].append(line.data.decode("utf-8", "backslashreplace").rstrip("\n"))
    return {who: [in_text(line) for line in lines] for who, lines in found.items()}
