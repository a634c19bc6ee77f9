"""Start a program of ours that goes on when this process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO


def start(script: str, argument: str, output: BinaryIO | None = None) -> subprocess.Popen[bytes]:
    """Run `script ARGUMENT SEARCH_PATH` in a bare interpreter, with its standard input open for this process.

    Without the `site` module an interpreter starts in about half the time; where to look for modules, it is told
    as JSON. `output` takes what it writes; None is where this process writes. Raises OSError.
    """
    search_path = json.dumps([str(Path(entry).absolute()) for entry in sys.path])
    return subprocess.Popen(
        [sys.executable, "-I", "-S", script, argument, search_path],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env=dict(os.environ),  # a library of this process may have set more, behind Python's back
        start_new_session=True,  # a Ctrl-C in this process's terminal is this process's
    )
