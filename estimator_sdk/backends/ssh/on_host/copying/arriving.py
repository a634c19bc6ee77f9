"""What hosts on other machines write, as it arrives in the job's folder, and what is there only to be brought there."""

from __future__ import annotations

import contextlib
import errno
import shutil
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path

from estimator_container.contract.names import EXIT_FRAMEWORK_ERROR, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime import machine
from estimator_container.runtime.loop import Loop

from .....plan.plan import Plan
from .....values.home import JobFolder, make_folder
from .....values.naming import some
from ....supervised.supervisor import base_directory
from .. import words
from .measured import is_begun_window
from .trees import DATA, TreeLanding

FULL_SECONDS = 600.0
"""For which the disk here may be full before what a host has written is given up."""
AGAIN_SECONDS = 2.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ArrivingFiles:
    """Those of one allocation. While the disk is full, items wait, and their keepers with all that comes after them."""

    def __init__(
        self,
        loop: Loop,
        folder: JobFolder,
        tell: Callable[[str, str], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        """`tell` sends a word to the keeper of a host; `failed` is called where an item cannot be kept."""
        self._loop = loop
        self._folder = folder
        self._tell = tell
        self._failed = failed
        self._frames_from: dict[str, int] = {}
        """Where in the log of a host what its keeper sends begins: the supervisor may have written there before."""
        self._left: dict[str, deque[list[str]]] = {}
        """Host -> the items that wait."""
        self._full_since: dict[str, float] = {}
        self._hurried: set[str] = set()

    def take(self, host: str, item: list[str]) -> None:
        """Do what an item of a host says, now or when there is room."""
        if host in self._left:
            self._left[host].append(item)
        elif not self._is_done(host, item):
            self._left[host] = deque([item])
            self._loop.after(AGAIN_SECONDS, lambda: self._go_on(host))

    def hasten(self, hosts: Collection[str]) -> None:
        """Wait no longer for room for what these have written: they are to end."""
        self._hurried.update(hosts)

    def forget(self, host: str) -> None:
        """Nothing of what it has sent matters any more."""
        self._left.pop(host, None)
        self._full_since.pop(host, None)
        self._hurried.discard(host)

    def _go_on(self, host: str) -> None:
        while left := self._left.get(host):
            if not self._is_done(host, left[0]):
                self._loop.after(AGAIN_SECONDS, lambda: self._go_on(host))
                return
            left.popleft()
        self._left.pop(host, None)  # unless it has been lost meanwhile

    def _is_done(self, host: str, item: list[str]) -> bool:
        """Whether an item was taken, or is given up, and not left for later."""
        try:
            self._land(host, item)
        except (OSError, ValueError) as error:
            now = time.monotonic()
            is_full = isinstance(error, OSError) and error.errno in _FULL and host not in self._hurried
            if is_full and now - self._full_since.setdefault(host, now) < FULL_SECONDS:
                return False
            self._failed(host, error)
        else:
            self._full_since.pop(host, None)
        self._tell(host, words.TAKEN)
        return True

    def _land(self, host: str, item: list[str]) -> None:
        place = self._folder.host(host)
        kind, name, *fields = item
        if (kind, name) == (DATA, words.FRAMES):
            offset, data = fields
            if offset == "0" and host not in self._full_since:
                log = Path(place, words.FRAMES)
                self._frames_from[host] = log.stat().st_size if log.exists() else 0
            fields = [str(int(offset) + self._frames_from.get(host, 0)), data]
        TreeLanding(str(place)).take(kind, name, *fields)
        if is_begun_window(name):
            Path(Layout(str(place)).timeline_request).unlink(missing_ok=True)


def end_of(host: str, code: str, *unreadable: str) -> tuple[int, Verdict | None]:
    """How a host has ended, by what its keeper says: well, unless not all that it has left could be read."""
    if int(code) or not unreadable:
        return int(code), None
    what = f"what {host} has left cannot all be read, so it is not all in the archives: {some(unreadable)}"
    return EXIT_FRAMEWORK_ERROR, Verdict(Kind.OUTPUTS, what, host)


def write_inputs(plan: Plan, folder: JobFolder, host: str, layout: Layout, address: str, secret: bytes) -> None:
    """Write what a host needs, to be brought to its machine; `address` is how others reach that."""
    base_directory.write(plan, host, layout, machine.interface_for(address, "eth0"))
    base_directory.write_secret(layout, secret)
    base_directory.write_environment(layout, plan.environment)
    base_directory.link_channels(plan, folder, host, Path(layout.data))
    if plan.code is not None:
        make_folder(layout.channeled_code)
        bundle = Path(plan.code)
        Path(layout.channeled_code, bundle.name).symlink_to(bundle)


def remove_secrets(layout: Layout) -> None:
    """Of a host that has them on its own machine: they were here to be brought there."""
    for path in (layout.world_secret, layout.environment):
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
    shutil.rmtree(layout.channeled_code, ignore_errors=True)
