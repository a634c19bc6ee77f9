"""What mpirun of Open MPI 4.1 says when something fails, as far as no rank has said it."""

from __future__ import annotations

import re

_IMPROPER_EXIT = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+ exiting\s+improperly")
_ABORT = re.compile(r"MPI_ABORT was invoked on rank (\d+) in communicator MPI_COMM_WORLD\s+with errorcode (-?\d+)")

# What an mpirun says that has other options than those that every command here has.
_OTHER_OPTIONS = re.compile(
    r"(?:unknown|unrecognized|invalid) (?:option|argument)\W+(?:host|np|bind-to|map-by|allow-run-as-root|mca)\b", re.I
)

IDLE = re.compile(rb"^\[[^\]\n]*\] plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=[^\n]*\n", re.M)
"""What mpirun says when the shell that it has started was quicker than itself to begin (setpgid(2), EACCES): it has put
itself into its group by then."""


def improper_exit_in(words: str) -> int | None:
    """The rank of which mpirun reports that it exited without MPI_Finalize, if it does."""
    found = _IMPROPER_EXIT.search(words)
    return int(found.group(1)) if found else None


def abort_in(words: str) -> tuple[int, int] | None:
    """The rank and the error code of an MPI_Abort on MPI_COMM_WORLD that mpirun reports, if it does.

    On another communicator, the rank that mpirun names is one of that communicator.
    """
    found = _ABORT.search(words)
    return (int(found.group(1)), int(found.group(2))) if found else None


def is_another_in(words: str) -> bool:
    """Whether an mpirun says that it does not know the options that those of Open MPI 4 have in common."""
    return _OTHER_OPTIONS.search(words) is not None
