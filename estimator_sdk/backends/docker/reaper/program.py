"""Clean up after a supervisor that was killed: `program.py "JOB OWNER" SEARCH_PATH` waits on its standard input.

There a supervisor says what it asks the engine to make, a line each, and what was answered. One that ends in good order
removes what it has and says so. If the input ends without that word, or before all was answered, nobody else is left to
do it; and if the engine is away, it is done when it is back.
"""

from __future__ import annotations

import json
import math
import sys
import time

ASKED, ANSWERED, DONE = "asked", "answered", "done"
"""The words that lines begin with; after the first two follows the name of a container or network."""
RETRY_SECONDS = 1.0


def main(job_name: str, owner: str) -> None:
    """Wait for the end of the supervisor; remove the job's containers and network unless it did."""
    pending: set[str] = set()
    is_done = False
    for line in sys.stdin:
        word, *names = line.split()
        if word == ASKED:
            pending.update(names)
        elif word == ANSWERED:
            pending.difference_update(names)
        else:
            is_done = True
    if is_done and not pending:
        return
    from estimator_container.runtime.loop import LONGEST_WAIT

    from estimator_sdk.backends.docker import engine

    deadline, late = time.monotonic() + LONGEST_WAIT, math.inf  # an engine that is away for longer has lost what it had
    while True:
        asked = time.monotonic()
        if engine.try_to_remove_job(job_name, owner, pending.discard):
            if not pending or asked > late:
                return
            late = min(late, time.monotonic() + engine.JOB_SECONDS)  # for so long the supervisor would have waited
        elif asked > deadline:
            return
        time.sleep(RETRY_SECONDS)  # nothing tells of an engine that comes back, nor of what it makes late


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    main(*sys.argv[1].split())
