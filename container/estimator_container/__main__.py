"""Start the toolkit from a bare interpreter: `python -I -S path/to/estimator_container train`.

Without the `site` module an interpreter starts in about half the time, but finds only the standard
library, so the place of this package is added by hand, after everything else.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    gc.disable()  # modules are no garbage: not while they come, and never after
    from estimator_container.train import main

    gc.freeze()
    gc.enable()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # on a machine of many hosts, what an interpreter tidies up at its end takes its time
