"""A client that is there to be killed: `python -m tests.chaos.client BACKEND IMAGE HOSTS PROCESSES SECONDS`.

It says its job's name once the job is started, and follows it to the end.
"""

from __future__ import annotations

import sys

from .faults import Shape
from .jobs import estimator


def main(backend: str, image: str, hosts: str, processes: str, seconds: str) -> None:
    shape = Shape(backend, int(hosts), int(processes))
    job = estimator(shape, image or None, {"seconds": float(seconds)}).fit(wait=False)
    print(job.name, flush=True)
    job.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
