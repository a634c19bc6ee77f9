"""The supervisor's side of what a job leaves in a store: its archives, and `output/intermediate` while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from ..watch import Watch

INTERMEDIATE = "intermediate/"


class Upload:
    """One run of the agent."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        uri: str,
        files: Mapping[str, str] | None = None,
        folders: Mapping[str, str] | None = None,
        named: Mapping[str, str] | None = None,
        frames: str | None = None,
        held: str | None = None,
    ) -> None:
        """The arguments are the agent's `Settings`. Raises OSError."""
        from estimator_container.agents.outputs import agent  # not loaded before something is to be uploaded

        from .helper import Helper

        settings = agent.Settings(uri, dict(files or {}), dict(folders or {}), dict(named or {}), frames, held)
        self._loop = loop
        self._finished: str | None = None
        self.not_uploadable = ""
        """What no store can hold, once it is finished: in words."""
        self._helper = Helper(loop, children, agent.__file__, self._hear, self._lost)
        self._helper.send("settings", settings.to_json())

    def finish(self) -> str:
        """Wait until all is uploaded. Returns why something is not; "" when all is."""
        self._helper.send("finish", "")
        self._loop.run_until(lambda: self._finished is not None)
        self._helper.kill()
        return self._finished or ""

    def kill(self) -> None:
        """End it at once, whatever is not uploaded."""
        self._helper.kill()

    def _hear(self, message: list[str]) -> None:
        _, self._finished, self.not_uploadable = message

    def _lost(self, code: int) -> None:
        if self._finished is None:
            self._finished = f"the process that uploads ended with {code}"


class Intermediate:
    """`output/intermediate` of every host of an attempt; nothing is started before a script writes there."""

    def __init__(self, plan: Plan, folder: JobFolder, uri: str, loop: Loop, children: Children) -> None:
        self._loop = loop
        self._children = children
        layouts = {host.name: Layout(str(folder.host(host.name))) for host in plan.hosts}
        self._uri = uri
        self._folders = {
            prefix_of(plan, name) + INTERMEDIATE: layout.output_intermediate for name, layout in layouts.items()
        }
        # In a container the script knows its folder by another path.
        inside = {host.name: Layout(str(folder.hosts / host.base_dir)) for host in plan.hosts}
        self._named = {
            prefix_of(plan, name) + INTERMEDIATE: layout.output_intermediate for name, layout in inside.items()
        }
        self._held = str(folder.path)
        self._frames = layouts[plan.hosts[0].name].frames
        self._watch: Watch | None = None
        self._upload: Upload | None = None

    def start(self) -> None:
        """Watch the folders, which are made. Raises OSError."""
        self._watch = Watch()
        for path in map(Path, self._folders.values()):
            make_folder(path)
            self._watch.add(path)
        if self._watch.fileno() >= 0:
            self._loop.on_readable(self._watch.fileno(), self._begin)

    def finish(self) -> tuple[str, str]:
        """Upload what is left. Returns why something is not uploaded, and what cannot be: in words, "" for nothing."""
        self._forget()
        folders = [Path(path) for path in self._folders.values()]
        if self._upload is None and any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
            self._begin()
        if self._upload is None:
            return "", ""
        return self._upload.finish(), self._upload.not_uploadable

    def abandon(self) -> None:
        """Upload nothing more: the folders are not ours any more."""
        self._folders = {}
        if self._upload is not None:
            self._upload.kill()
            self._upload = None

    def _begin(self) -> None:
        self._forget()
        self._upload = Upload(
            self._loop, self._children, self._uri, None, self._folders, self._named, self._frames, self._held
        )

    def _forget(self) -> None:
        if self._watch is not None:
            self._loop.forget(self._watch.fileno())
            self._watch.close()
            self._watch = None


def prefix_of(plan: Plan, host: str) -> str:
    """What is before the keys of a host: the first host that makes the model has none, others are kept apart."""
    makers = plan.model_hosts or tuple(each.name for each in plan.hosts)
    return "" if host == makers[0] else f"hosts/{host}/"


def upload(loop: Loop, children: Children, uri: str, files: Mapping[str, Path]) -> str:
    """Upload files, key by key. Returns why that failed; "" when it did not."""
    return Upload(loop, children, uri, {key: str(path) for key, path in files.items()}).finish()
