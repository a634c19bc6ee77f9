"""All that test processes share and that takes long to start: the object stores, Slurm, and the pool of ssh.

    python -m tests.engines

starts them side by side and prints the variables by which tests find them: NAME=VALUE, one in a line, and an empty line
at the end. They end with its standard input.
"""

from __future__ import annotations

import signal
import sys

from tests.shared_engine import exit_at_sigterm, side_by_side
from tests.slurm import cluster
from tests.ssh import pool
from tests.stores import servers


def main() -> int:
    exit_at_sigterm()
    # Ctrl-C is for the tests, which still need them; and jobs on Slurm are not to ignore it.
    signal.signal(signal.SIGINT, lambda number, _: None)
    with side_by_side([servers.variables(), cluster.ENGINE.variables(), pool.ENGINE.variables()]) as variables:
        for name, value in (each for of_engine in variables for each in of_engine.items()):
            print(f"{name}={value}")
        print(flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
