"""The program at the other end of a session: it answers requests on standard input, and ends with it.

Each is a line of JSON, with `size` bytes after it; so is each answer. `session.boot` loads this by itself: most
machines of a job have nothing to do but to start a keeper, and our packages take longer to load than that takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_sdk.backends.ssh.on_host.operations import Operations


class StartedKeeper:
    """The keeper of a host: it is started at once, and loads what it needs while nobody can tell it yet what to do.

    It goes on when the session has ended; where that ends before it was told anything, it ends, too.
    """

    def __init__(self, root: str, name: str) -> None:
        """Raises OSError."""
        reads, self._writes = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        self._pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", f"{root}/estimator_sdk/backends/ssh/on_host", name],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in ((reads, 0), (nothing, 1), (nothing, 2))],
        )
        os.close(reads)
        os.close(nothing)

    def tell(self, settings: bytes) -> None:
        """Pass on what it is to do. Raises OSError where it has ended."""
        with open(self._writes, "wb") as pipe:
            pipe.write(settings)

    def collect(self) -> None:
        """Let the kernel forget it once it has ended."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, os.WNOHANG)


def main(root: str, given: dict[str, Any]) -> None:
    """Answer until standard input ends; `given` is what the session was opened with, as `connection.Purpose` has it."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that is printed is taken for an answer
    keeper = StartedKeeper(root, given["keeper"]) if given["keeper"] else None
    sys.path.insert(0, root)
    operations = _operations(root, given["stores"]) if given["starts_job"] else None
    while line := requests.readline():
        facts = json.loads(line)
        data = requests.read(facts["size"])
        if len(data) < facts["size"]:
            break  # the connection was cut: half of a request is none
        contents = b""
        if keeper is not None:
            keeper.collect()
        if keeper is not None and facts["operation"] == "keep":
            answer = _told(keeper, data)
        else:
            operations = operations or _operations(root, given["stores"])
            answer, contents = operations.answer(facts, data)
        answers.write(json.dumps(answer).encode() + b"\n" + contents)
        answers.flush()
    if operations is not None:
        operations.close()
    os._exit(0)  # there is nothing to tidy up


def _told(keeper: StartedKeeper, settings: bytes) -> dict[str, Any]:
    try:
        keeper.tell(settings)
    except OSError as error:
        return {"error": f"the keeper of the host has ended: {error}"}
    return {}


def _operations(root: str, stores: str) -> Operations:
    """All that needs our packages; `stores` is the folder of the software with the client of stores, or empty."""
    if stores:
        import site

        site.main()  # what this machine has itself comes before what was brought
        sys.path.append(f"{root}/{stores}")
    from estimator_sdk.backends.ssh.on_host.operations import Operations

    return Operations(bool(stores))
