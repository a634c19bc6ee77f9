"""The supervisor's side of the input channels: what is fetched for the hosts of this machine, once for all of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from estimator_container.agents.channels.settings import ChannelSettings
from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder
from .agent_process import AgentOwner
from .channel_places import as_channel


class Channels(AgentOwner):
    """The channels of one attempt. What an earlier one has fetched is there; pipes begin anew."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        loop: Loop,
        children: Children,
        on_failed: Callable[[str], None],
        own: Sequence[str] | None = None,
    ) -> None:
        """`on_failed` is called with the reason when a pipe fails after `wait`.

        `own` are the hosts of this machine, where others have channels of their own; None is all hosts.
        """
        super().__init__(loop, children)
        self._on_failed = on_failed
        layouts = {host.name: Layout(str(folder.host(host.name))) for host in plan.hosts}
        missing = (each for each in plan.channels if not each.is_in_place and not folder.channel(each.name).exists())
        self._settings = ChannelSettings(
            channels=tuple(as_channel(each, folder) for each in missing),
            hosts={name: layout.data for name, layout in layouts.items()},
            links="hard" if plan.sees_only_mounts else "symbolic",
            frames=_log_of(layouts, own),
            wanted=None if own is None else tuple(own),
        )
        self._ready = False
        self._failed: str | None = None

    def start(self) -> None:
        """Start fetching, and return at once. Raises OSError."""
        self._clear()
        if self._settings.channels:
            self._start(self._settings)

    def wait(self, stopped: Callable[[], bool]) -> str | None:
        """Wait until all channels are in place, or `stopped` is true. Returns why they cannot be, if they cannot."""
        if self._agent is not None:
            self._loop.run_until(lambda: self._ready or self._failed is not None or stopped())
        return self._failed

    def end(self) -> None:
        """End all transfers; removes partial data and FIFOs."""
        super().abandon()
        self._clear()

    def abandon(self) -> None:
        """End all transfers, and touch no files any more."""
        super().abandon()
        self._settings = replace(self._settings, channels=())

    def _clear(self) -> None:
        for channel in self._settings.channels:
            shutil.rmtree(channel.draft, ignore_errors=True)
            for folder in self._settings.hosts.values() if channel.is_piped else ():
                _remove_pipes(Path(folder), channel.name)

    def _on_message(self, message: list[str]) -> None:
        kind, reason = message
        if kind == "ready":
            self._ready = True
        elif self._failed is None:
            self._failed = reason
            if self._ready:
                self._on_failed(reason)

    def _lost(self, code: int) -> None:
        self._on_message(["failed", f"the process that fetches the channels ended with {code}; run the job again"])


def _log_of(layouts: Mapping[str, Layout], own: Sequence[str] | None) -> str:
    """That of the first host of this machine; a machine without one, which is spare, tells nobody."""
    if own is None:
        return next(iter(layouts.values())).frames
    return layouts[own[0]].frames if own else os.devnull


def _remove_pipes(folder: Path, name: str) -> None:
    pattern = re.compile(rf"{re.escape(name)}_\d+")
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            if pattern.fullmatch(path.name) and stat.S_ISFIFO(path.lstat().st_mode):
                path.unlink()
