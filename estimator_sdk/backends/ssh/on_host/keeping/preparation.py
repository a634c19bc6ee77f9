"""What a keeper needs on its machine before it can have a host, and how it says that this cannot be."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import estimator_container
from estimator_container.contract.cluster import address_and_port
from estimator_container.mesh.mesh import Member, MeshObserver, MeshWorker
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime import private_folder
from estimator_container.runtime.loop import Loop

from ....supervised.supervisor.hosts_line import MISSED_BEATS
from .. import words

CONNECT_SECONDS = 60.0
"""That the supervisor may take to be found."""
REFUSED_SECONDS = 1.0
"""For which nobody listens where it is to be found, after which it is gone: it listened before it was started."""


class CommonFolder:
    """The folder that has the same path on all machines, where a link leads to the software."""

    def __init__(self, path: str) -> None:
        """Make it, and the link, where they are not there yet. Raises OSError and ConfigurationError."""
        self.path = Path(private_folder.given(path))
        private_folder.hold(path)
        self._is_own = False
        try:
            (self.path / "software").symlink_to(Path(estimator_container.__file__).parents[1])
            self._is_own = True
        except FileExistsError:
            pass
        except OSError:
            self.path.rmdir()
            raise

    def remove(self) -> None:
        """Unless somebody else has made it, who removes it."""
        if self._is_own:
            shutil.rmtree(self.path, ignore_errors=True)


def detach() -> None:
    """From the session that has started this program, which may end."""
    os.setsid()
    os.chdir("/")


def mesh_to_supervisor(loop: Loop, given: words.KeeperSettings, observer: MeshObserver) -> MeshWorker:
    """The connection to the job's supervisor, which is made from now on.

    A supervisor that its disk holds up for some seconds is not lost: where it ends, its kernel closes the connection.
    """
    member = Member(given.name, (words.SUPERVISOR,), bytes.fromhex(given.secret))
    until = time.monotonic() + CONNECT_SECONDS
    place = address_and_port(given.supervisor)
    return MeshWorker(loop, member, observer, lambda: place, until, MISSED_BEATS, REFUSED_SECONDS)


class UnfitKeeper:
    """Tells the supervisor why this machine cannot have a host. See `MeshObserver` for what is heard."""

    def __init__(self, given: words.KeeperSettings, why: str) -> None:
        self._why = why
        self._is_over = False
        self._loop = Loop()
        self._mesh = mesh_to_supervisor(self._loop, given, self)

    def run(self) -> None:
        """Until the supervisor has been told, or is gone."""
        self._loop.run_until(lambda: self._is_over)

    def on_joined(self, host: str) -> None:
        self._mesh.begin_to_beat()
        self._mesh.send(words.UNFIT, self._why)

    def on_message(self, host: str, message: list[str]) -> None:
        self._is_over = message[0] == words.LEAVE

    def on_lost(self, host: str, how: Loss) -> None:
        self._is_over = True
