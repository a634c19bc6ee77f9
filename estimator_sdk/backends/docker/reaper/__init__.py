"""What cleans up after a supervisor that was killed: a process of its own, as the supervisor knows it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ...supervised import detached
from . import program


class Reaper:
    """Runs until it is told that it has nothing to do, or this process ends."""

    def __init__(self, job_name: str, owner: str) -> None:
        """`owner` is what containers and networks of this supervisor's are marked with. Raises OSError."""
        self._process = detached.start(program.__file__, f"{job_name} {owner}")

    @contextlib.contextmanager
    def asking_for(self, name: str) -> Iterator[None]:
        """Around what asks the engine for a container or network, which may be made though nobody waits any more."""
        import docker

        self._tell(program.ASKED, name)
        try:
            yield
        except docker.errors.DockerException:  # which is an answer, if the engine was asked at all
            self._tell(program.ANSWERED, name)
            raise
        self._tell(program.ANSWERED, name)

    def end(self, is_done: bool) -> None:
        """Let it end, at once if all is done, or when it has removed what is left."""
        if is_done:
            self._tell(program.DONE)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _tell(self, *words: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # somebody has killed it
            os.write(self._process.stdin.fileno(), f"{' '.join(words)}\n".encode())
