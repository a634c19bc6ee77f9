"""The connections to machines that OpenSSH keeps open for all of a user's processes, and their sockets."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from estimator_container.runtime import private_folder
from estimator_container.runtime.errors import ConfigurationError

from ....errors import BackendError

CLOSE_SECONDS = 5.0
"""That connections may take to be closed."""
_LONGEST_SOCKET = 103
"""Bytes of the path of a socket, also where a client has macOS, whose own TMPDIR has 49."""
_SOCKET_NAME = 2 + 40 + 17
"""Of those for what is below a place: two slashes, OpenSSH's %C, and what it adds until the socket is ready."""


def folder() -> str:
    """A folder of this user alone with a short path, for the sockets of the connections. Raises BackendError."""
    name = f"est-ssh-{os.geteuid()}"
    try:
        return private_folder.given(f"{private_folder.base(_LONGEST_SOCKET - len(name) - _SOCKET_NAME)}/{name}")
    except (ConfigurationError, OSError) as error:
        raise BackendError(f"there is no place for the connections of ssh: {error}") from None


def close() -> None:
    """Close the connections that this user's processes have left open."""
    close_in(Path(folder()))


def close_in(place: Path) -> None:
    """Close those whose sockets are in a folder, and wait until they are closed."""
    until = time.monotonic() + CLOSE_SECONDS
    for path in place.iterdir():
        # The name is of no use, but there has to be one.
        command = ["ssh", "-O", "exit", "-o", f"ControlPath={path}", "any"]
        subprocess.run(command, capture_output=True, check=False)
        while path.exists() and time.monotonic() < until:
            time.sleep(0.001)
