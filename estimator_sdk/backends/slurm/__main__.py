"""The supervisor of a job on Slurm, in its allocation: `python -I …/backends/slurm FOLDER SEARCH_PATH`."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))  # not ignored any more: they wait
    sys.path[:] = [*json.loads(sys.argv[2]), *sys.path[1:]]  # the first is this folder
    gc.disable()  # until all modules are there, which are no garbage
    from estimator_sdk.backends.slurm.allocation.program import main

    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
