"""Clean up after a supervisor that was killed: `reaper.py "JOB OWNER" SEARCH_PATH` waits on its standard input.

A supervisor that ends in good order removes its containers and says so. If the input ends without that word,
nobody else is left to do it, and if the engine is away, it is done when it is back.
"""

from __future__ import annotations

import json
import sys
import time

DONE = b"done"
RETRY_SECONDS = 1.0


def main(job_name: str, owner: str) -> None:
    """Wait for the end of the supervisor; remove the job's containers and network unless it did."""
    if sys.stdin.buffer.read() == DONE:
        return
    from estimator_container.runtime.loop import LONGEST_WAIT

    from estimator_sdk.backends.docker import engine

    deadline = time.monotonic() + LONGEST_WAIT  # an engine that is away for longer has lost what it had
    while not engine.try_to_remove_job(job_name, owner) and time.monotonic() < deadline:
        time.sleep(RETRY_SECONDS)  # nothing tells of an engine that comes back


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    main(*sys.argv[1].split())
