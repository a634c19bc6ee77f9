"""The kinds of failures: where they come from, and what to try."""

from __future__ import annotations

import errno
from enum import Enum


class Origin(Enum):
    """Where a failure comes from."""

    USER = "user"
    """The script: it fails again."""
    PLATFORM = "platform"
    """The hosts and what runs them: another attempt may not meet it again."""
    OTHER = "other"
    """What a job needs besides its script, such as data or an image: it fails again until somebody has fixed that."""


_HOSTS_STAY = True
_MAY_PASS = (
    *(errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ESHUTDOWN),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH),
)
"""Numbers of errors that may pass: a lack of resources, or a network file system that fails."""


class Kind(str, Enum):
    """What went wrong. A kind is equal to its value, which is the `kind` of a verdict in JSON.

    A backend of another package, or another version, may have kinds of its own: `Kind("quota_exceeded")` is one of
    which nothing else is known. Raises ValueError for anything but a str.
    """

    _value_: str
    origin: Origin
    what_to_try: str
    """The first thing that its reader may do; empty where nothing is known."""
    leaves_hosts: bool
    """Whether every host can run another attempt as it is."""

    def __new__(
        cls, value: str, origin: Origin = Origin.OTHER, what_to_try: str = "", leaves_hosts: bool = False
    ) -> Kind:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.origin = origin
        kind.what_to_try = what_to_try
        kind.leaves_hosts = leaves_hosts
        return kind

    EXCEPTION = (
        "exception",
        Origin.USER,
        "Fix the script at the line of the traceback; `job.logs(rank=…)` has all that a rank wrote.",
        _HOSTS_STAY,
    )
    IMPORT_ERROR = (
        "import_error",
        Origin.USER,
        "Add the package to requirements.txt in source_dir, or choose an image that has it.",
        _HOSTS_STAY,
    )
    EXIT_CODE = (
        "exit_code",
        Origin.USER,
        "`job.logs(rank=…)` has all that the rank wrote; a code above 128 is often 128 and a signal's number.",
        _HOSTS_STAY,
    )
    SIGNAL = (
        "signal",
        Origin.USER,
        "SIGSEGV and SIGBUS come from native code; SIGKILL usually means out of memory, or that someone killed it.",
        _HOSTS_STAY,
    )
    OUT_OF_MEMORY = (
        "out_of_memory",
        Origin.USER,
        "Give each host more memory, or the script a smaller batch or fewer processes per host.",
        _HOSTS_STAY,
    )
    EARLY_EXIT = (
        "early_exit",
        Origin.USER,
        "Let every rank make the same collective calls: look for a branch, or a shorter share of the data.",
        _HOSTS_STAY,
    )
    DEADLOCK = (
        "deadlock",
        Origin.USER,
        "Look for a collective call that not every rank makes, or a read, a lock or a loop that never ends; "
        "hang_timeout=0 leaves ranks that only seem to stand still alone.",
        _HOSTS_STAY,
    )
    RANKS_DIFFER = (
        "ranks_differ",
        Origin.USER,
        "Average the gradients of each model over all ranks (by DistributedOptimizer, DistributedGradientTape or "
        "DistributedDataParallel), and broadcast the first weights of one rank; if they are to differ, "
        'environment={"ESTIMATOR_DRIFT_GUARD": "warn"} lets them.',
        _HOSTS_STAY,
    )
    FROZEN = (
        "frozen",
        Origin.PLATFORM,
        "Something stopped the process from outside, such as a debugger; continue it with `kill -CONT`.",
        _HOSTS_STAY,
    )
    REQUIREMENTS = (
        "requirements",
        Origin.USER,
        "Try `pip install -r requirements.txt` with the same Python.",
    )
    MPI = (
        "mpi",
        Origin.OTHER,
        "The toolkit's part of the log (`job.logs(stream='toolkit')`) has mpirun's output and its command line.",
        _HOSTS_STAY,
    )
    CONFIGURATION = (
        "configuration",
        Origin.OTHER,
        "The platform and the job's description do not match: see the file or variable that is named.",
    )
    CHANNELS = (
        "channels",
        Origin.OTHER,
        "Check the URI, and that the credentials may list and read it.",
    )
    CHECKPOINTS = (
        "checkpoints",
        Origin.OTHER,
        "Check checkpoint_s3_uri, and that the credentials may list, read and write below it.",
    )
    OUTPUTS = (
        "outputs",
        Origin.OTHER,
        "Check output_path, its credentials and the free disk space; the outputs are still in the folder named above.",
    )
    IMAGE = (
        "image",
        Origin.OTHER,
        "Start the image by hand, such as with `docker run`, to see what it lacks.",
    )
    HOST_LOST = (
        "host_lost",
        Origin.PLATFORM,
        "Run the job again; max_retry_attempts= does so automatically, from the newest checkpoint.",
    )
    HOST_MISSING = (
        "host_missing",
        Origin.PLATFORM,
        "See whether the host was started, and whether the hosts can reach each other's ports.",
    )
    PREEMPTED = (
        "preempted",
        Origin.PLATFORM,
        "Run the job again, and it continues from its last checkpoint; with retries allowed it does so automatically.",
    )
    PLATFORM = (
        "platform",
        Origin.PLATFORM,
        "Run the job again; max_retry_attempts= does so automatically, from the newest checkpoint.",
    )
    TOOLKIT = (
        "toolkit",
        Origin.OTHER,
        "This is a fault of the toolkit: please report it with the traceback.",
    )

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> Kind | None:
        if not isinstance(value, str):
            return None
        kind = str.__new__(cls, value)  # no member, so it is not among those of `Kind`
        kind._name_ = kind._value_ = value
        kind.origin = Origin.OTHER
        kind.what_to_try = ""
        kind.leaves_hosts = False
        return kind

    def __reduce_ex__(self, protocol: object) -> tuple[type[Kind], tuple[str]]:
        """By its value: Python 3.11.2 copies by the name, which only members have."""
        return Kind, (self._value_,)


def of_error(error: Exception) -> Kind:
    """The kind of an error met while a host is prepared or runs: PLATFORM if it may pass, else CONFIGURATION."""
    may_pass = isinstance(error, OSError) and error.errno in _MAY_PASS
    return Kind.PLATFORM if may_pass else Kind.CONFIGURATION
