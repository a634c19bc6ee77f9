"""All that test processes share and that takes long to start: the object stores, Slurm, and the pool of ssh.

    python -m tests.engines

starts them side by side and prints the variables by which tests find them: NAME=VALUE, one in a line, and an empty line
at the end. They end with its standard input.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator

from tests.shared_engine import side_by_side
from tests.slurm import cluster
from tests.ssh import pool
from tests.stores import servers


@contextlib.contextmanager
def slurm() -> Iterator[dict[str, str]]:
    with cluster.cluster() as made:
        yield {cluster.SHARED: str(made.folder)}


@contextlib.contextmanager
def ssh() -> Iterator[dict[str, str]]:
    with pool.pool() as made:
        yield {pool.SHARED: str(made.folder)}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    # Ctrl-C is for the tests, which still need them; and jobs on Slurm are not to ignore it.
    signal.signal(signal.SIGINT, lambda number, _: None)
    with side_by_side([servers.shared(), slurm(), ssh()]) as variables:
        for name, value in (each for of_engine in variables for each in of_engine.items()):
            print(f"{name}={value}")
        print(flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
