"""Start a supervisor in a bare interpreter: `python -I -S …/backends/supervised FOLDER SEARCH_PATH`.

Without the `site` module an interpreter starts in about half the time; the search path comes from the
client instead, as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    gc.disable()  # until all modules are there, which are no garbage
    from estimator_sdk.backends import hosts_factory
    from estimator_sdk.backends.supervised.supervising import main

    code = main(sys.argv[1:2], hosts_factory)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # somebody may wait for this end, and there is nothing left to tidy up
