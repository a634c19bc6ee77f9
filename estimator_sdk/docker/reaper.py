"""Clean up after a supervisor that was killed: `reaper.py JOB SEARCH_PATH` waits on its standard input.

A supervisor that ends in good order removes its containers and says so. If the input ends without that word,
nobody else is left to do it.
"""

from __future__ import annotations

import json
import sys

DONE = b"done"


def main(job_name: str) -> None:
    """Wait for the end of the supervisor; remove the job's containers and network unless it did."""
    if sys.stdin.buffer.read() != DONE:
        from estimator_sdk.docker import engine

        engine.remove_job(engine.connect(), job_name)


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    main(sys.argv[1])
