"""The supervisor's side of `output/intermediate`, which goes to a store while the job runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import HeldFolder
from estimator_container.runtime.loop import Loop, Timer

from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder, make_folder
from ..watch import Watch

if TYPE_CHECKING:
    from .uploads import Upload

INTERMEDIATE = "intermediate/"
AGAIN_SECONDS = 30.0  # between two tries to start what uploads


class Intermediate:
    """`output/intermediate` of every host of an attempt; nothing is started before a script writes there."""

    def __init__(
        self, plan: Plan, folder: JobFolder, uri: str, loop: Loop, children: Children, held: HeldFolder
    ) -> None:
        self._loop = loop
        self._children = children

        def by_prefix(base: Callable[[HostPlan], Path]) -> dict[str, str]:
            bases = {prefix_of(plan, host.name) + INTERMEDIATE: base(host) for host in plan.hosts}
            return {prefix: Layout(str(path)).output_intermediate for prefix, path in bases.items()}

        self._uri = uri
        self._folders = by_prefix(lambda host: folder.host(host.name))
        # In a container the script knows its folder by another path.
        self._named = by_prefix(lambda host: folder.hosts / host.base_dir)
        self._held = held
        self._frames = Layout(str(folder.host(plan.hosts[0].name))).frames
        self._watch: Watch | None = None
        self._upload: Upload | None = None
        self._again: Timer | None = None

    def start(self) -> None:
        """Create the folders, and watch them. Raises OSError."""
        self._watch = Watch()
        for path in map(Path, self._folders.values()):
            make_folder(path)
            self._watch.add(path)
        if self._watch.fileno() >= 0:
            self._loop.on_readable(self._watch.fileno(), self._begin_if_possible)

    def finish(self) -> tuple[str, str]:
        """Upload what is left. Returns why an upload failed, and which files cannot be uploaded; "" for none."""
        self._forget()
        folders = [Path(path) for path in self._folders.values()]
        if self._upload is None and any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
            try:
                self._begin()
            except OSError as error:
                return f"no process that uploads can be started: {error.strerror}", ""
        if self._upload is None:
            return "", ""
        return self._upload.finish(), self._upload.not_uploadable

    def abandon(self) -> None:
        """Upload nothing more, because the folders no longer belong to this job."""
        self._forget()
        self._folders = {}
        if self._upload is not None:
            self._upload.abandon()
            self._upload = None

    def _begin_if_possible(self) -> None:
        """Where a machine has no room for one more process, there may be some later: the job goes on."""
        self._forget()
        try:
            self._begin()
        except OSError:
            self._again = self._loop.after(AGAIN_SECONDS, self._begin_if_possible)

    def _begin(self) -> None:
        from estimator_container.agents.outputs.settings import OutputSettings  # a job that writes none needs none

        from .uploads import Upload

        settings = OutputSettings(
            self._uri, folders=self._folders, named=self._named, frames=self._frames, held=self._held
        )
        self._upload = Upload(self._loop, self._children, settings)

    def _forget(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._watch is not None:
            self._loop.forget(self._watch.fileno())
            self._watch.close()
            self._watch = None


def prefix_of(plan: Plan, host: str) -> str:
    """What is before the keys of a host: the first host that makes the model has none, others are kept apart."""
    makers = plan.model_hosts or tuple(each.name for each in plan.hosts)
    return "" if host == makers[0] else f"hosts/{host}/"
