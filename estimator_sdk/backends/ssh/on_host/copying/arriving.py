"""What hosts on other machines write, as it arrives in the job's folder, and what is there only to be brought there."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from estimator_container.contract.names import EXIT_FRAMEWORK_ERROR, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime import machine

from .....plan.plan import Plan
from .....values.home import JobFolder, make_folder
from .....values.naming import some
from ....supervised.supervisor import base_directory
from .. import words
from .measured import is_begun_window
from .trees import DATA, TreeLanding


class ArrivingFiles:
    """Those of one allocation."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._frames_from: dict[str, int] = {}
        """Where in the log of a host what its keeper sends begins: the supervisor may have written there before."""

    def take(self, host: str, item: list[str]) -> None:
        """Do what an item of a host says. Raises OSError and ValueError."""
        place = self._folder.host(host)
        kind, name, *fields = item
        if (kind, name) == (DATA, words.FRAMES):
            offset, data = fields
            if offset == "0":
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
