"""What mpirun calls instead of ssh: `agent NODE COMMAND…`, a shell script, for a shell is up in a millisecond.

It leaves the command in a file and the node's name in a pipe, which the toolkit of its own host reads, and ends when
that one has said whether the MPI daemon runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable

from ...runtime import private_folder
from ...runtime.loop import Loop

_SCRIPT = """#!/bin/sh
node=$1
shift
cd {folder} && exec 3< "$node.answer" || exit 1
printf '%s' "$*" > "$node.request"
echo "$node" > asked
read -r outcome <&3 || outcome="the toolkit of its own host has ended"
test "$outcome" = started && exit 0
echo "$node could not start its MPI daemon: $outcome" >&2
exit 1
"""
STARTED = "started"


class LaunchAgents:
    """The agents of one mpirun, as the first host's toolkit sees them."""

    def __init__(self, loop: Loop, folder: str, nodes: Iterable[str], on_request: Callable[[str, str], None]) -> None:
        """`on_request` gets a node and the command of its daemon. `folder` is made anew. Raises OSError."""
        self._loop = loop
        self._folder = folder
        self._on_request = on_request
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        self.path = os.path.join(folder, "agent")
        """mpirun splits the agent's command at spaces, so it is a program without arguments."""
        private_folder.write(self.path, _SCRIPT.format(folder=shlex.quote(folder)))
        os.chmod(self.path, stat.S_IRWXU)
        self._asked = self._pipe("asked")
        self._answers = {node: self._pipe(f"{node}.answer") for node in nodes}
        loop.on_readable(self._asked, self._read)

    def answer(self, node: str, outcome: str) -> None:
        """Let the agent end: `STARTED`, or why the daemon does not run."""
        os.write(self._answers[node], f"{' '.join(outcome.split())}\n".encode())

    def close(self) -> None:
        """Stop listening to launch agents, and close the pipes."""
        self._loop.forget(self._asked)
        for pipe in (self._asked, *self._answers.values()):
            os.close(pipe)

    def _pipe(self, name: str) -> int:
        """A named pipe, open at both ends, so that it has no end as long as this process lives."""
        path = os.path.join(self._folder, name)
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _read(self) -> None:
        # A name is one write of an agent, so it comes whole.
        for node in os.read(self._asked, 1 << 16).decode().split("\n"):
            if node in self._answers:
                with open(os.path.join(self._folder, f"{node}.request")) as file:
                    self._on_request(node, file.read())
