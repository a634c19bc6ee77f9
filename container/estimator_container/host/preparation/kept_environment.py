"""Environments that a machine keeps between jobs: what a `requirements.txt` asks for, installed once, under its hash.

A job's own environment is on top of one: what the script installs itself goes there, and no other job sees it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence

_FOR_INDEX = re.compile(
    r"(-i|--(index-url|extra-index-url|trusted-host|pre|hash|no-binary|only-binary|prefer-binary))\b"
)
_BY_NAME = re.compile(r"[A-Za-z0-9](?!.*(/|\$\{|\.(whl|zip|tar|tgz|gz|bz2|xz)\b))")
"""Of a requirement that is not a file of the code, or an address, behind which something else may be by then."""


def key_of(requirements: bytes, below: Sequence[str]) -> str | None:
    """What tells the environment from all others; None where it hangs on more than this file and this Python.

    `below` are the folders of packages that this Python has already.
    """
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in requirements.decode("utf-8", "replace").splitlines())
    if not all(_FOR_INDEX.match(line) or _BY_NAME.match(line) for line in lines if line):
        return None
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_"))
    there = [f"{path} {os.stat(path).st_mtime_ns}" for path in below if os.path.isdir(path)]
    known = "\n".join([sys.executable, sys.version, *settings, *there]).encode()
    return hashlib.sha256(known + b"\n\n" + requirements).hexdigest()[:32]


def ensure(place: str, install: Callable[[str], int]) -> int:
    """Have `install` fill the environment at `place`, unless that is done; returns its exit code.

    A host that comes while another one installs waits for it. Raises OSError.
    """

    def fill() -> int:
        shutil.rmtree(place, ignore_errors=True)  # of an installation that was ended in its middle
        return install(place)

    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    return once(f"{place}.lock", place, fill)


def once(lock: str, place: str, install: Callable[[], int]) -> int:
    """Have `install` fill a folder, unless its marker says that it has; returns the exit code. Raises OSError.

    Who comes meanwhile waits: `lock` is the path of a file.
    """
    marker = os.path.join(place, "installed")
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(marker):
            return 0
        outcome = install()
        if outcome == 0:
            with open(marker, "w"):
                pass
        return outcome


def link_programs(place: str, overlay: str) -> None:
    """Put the programs of an environment beside those of the one on top of it."""
    for name in os.listdir(os.path.join(place, "bin")):
        link = os.path.join(overlay, "bin", name)
        if not os.path.lexists(link):
            os.symlink(os.path.join(place, "bin", name), link)
