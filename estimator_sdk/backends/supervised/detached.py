"""Start one of our programs so that it continues when this process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO


def bare(script: str, argument: str) -> list[str]:
    """The command of `script ARGUMENT SEARCH_PATH` in a bare interpreter.

    Without the `site` module it starts in about half the time; where to look for modules, it is told as JSON.
    """
    search_path = [str(Path(entry).absolute()) for entry in sys.path]
    return [sys.executable, "-I", "-S", script, argument, json.dumps(search_path)]


def start(
    script: str,
    argument: str,
    output: BinaryIO | None = None,
    blocked: Collection[signal.Signals] = (),
    variables: Mapping[str, str] | None = None,
    inherited: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Run `script ARGUMENT SEARCH_PATH` in a bare interpreter, with its standard input open for this process.

    `output` takes what it writes; None is where this process writes. Signals that are `blocked` wait until it takes
    them. It has `variables` besides this process's own, and the descriptors in `inherited`. Raises OSError.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        return subprocess.Popen(
            bare(script, argument),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                **(variables or {}),
            },  # a library of this process may have set more, behind Python's back
            start_new_session=True,  # a Ctrl-C in this process's terminal is this process's
            pass_fds=tuple(inherited),
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
