"""A supervisor's hold on its job's folder: once that is removed, what is under the job's name may be another job's."""

from __future__ import annotations

from estimator_container.runtime.folder_hold import FolderHold, HeldFolder
from estimator_container.runtime.loop import Loop

from ....values.home import JobFolder
from ..watch import Watch


class NotOurs(Exception):
    """The job's folder is not the one that this process has to write to."""


class Hold:
    """The folder that has the job's name when this is made."""

    def __init__(self, folder: JobFolder) -> None:
        """Raises OSError."""
        self._path = folder.path
        self._held = FolderHold(str(folder.path))
        self._identity = self._held.identity

    def check(self) -> None:
        """Raises NotOurs unless the folder under the job's name is still the same."""
        if not self._held.is_there():
            raise NotOurs(f"the job's folder {self._path} was removed or replaced: the job ends and leaves nothing")

    @property
    def identity(self) -> HeldFolder:
        """What agents are told, for whom another folder may be at the path by the time that they open it."""
        return self._identity

    def fileno(self) -> int:
        """A descriptor of the folder: what is opened below it is in this folder, whatever has its name by now."""
        return self._held.fileno()

    def watch(self, loop: Loop) -> None:
        """Have the loop raise NotOurs as soon as that happens, if the kernel gives an inotify instance."""
        watch = Watch()
        watch.add_removals(self._path.parent)
        if watch.fileno() >= 0:
            loop.on_readable(watch.fileno(), lambda: self._look(loop, watch))

    def _look(self, loop: Loop, watch: Watch) -> None:
        watch.clear()
        try:
            self.check()
        except NotOurs:
            loop.forget(watch.fileno())  # once is enough
            watch.close()
            raise
