"""Whether there is a cell to show a job in."""

from __future__ import annotations

import sys


def is_here() -> bool:
    """Whether this code runs in a notebook's kernel, whose cells show HTML."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
