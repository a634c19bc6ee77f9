"""Start a host's keeper: `python -I -S …/backends/ssh/on_host NAME`; all that it is told comes on standard input."""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    folder = os.path.abspath(__file__)  # noqa: PTH100 - before anything is imported
    for _ in range(4):
        folder = os.path.dirname(folder)  # noqa: PTH120
    sys.path[0] = os.path.dirname(folder)  # noqa: PTH120
    gc.disable()  # until all modules are there, which are no garbage
    from estimator_sdk.backends.ssh.on_host.keeping.keeper import main

    gc.freeze()
    gc.enable()
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
