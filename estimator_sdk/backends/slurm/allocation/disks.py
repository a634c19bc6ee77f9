"""The local disks of a job's nodes, to which channels are fetched once a node: the supervisor's side."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from estimator_container.runtime.children import Children, signal_group
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from ...supervised.detached import bare
from . import keeper, steps
from .nodes import Node, SlurmAllocation
from .places import Places

STEP = "channels"
"""The name of the step on each node."""
REMOVE_SECONDS = 60.0
"""That nodes may take to remove what they have."""


class LocalDisks:
    """What the nodes have, for as long as the supervisor runs: another attempt finds it."""

    def __init__(
        self, plan: Plan, folder: JobFolder, environment: Mapping[str, str], loop: Loop, children: Children
    ) -> None:
        """`environment` is what a step needs to run on a node."""
        self._plan = plan
        self._folder = folder
        self._environment = environment
        self._loop = loop
        self._children = children
        self._disks: dict[str, _Disk] = {}
        """Node -> what it has."""
        self._left: list[_Disk] = []
        """What it had when that came to nothing."""

    def fill(self, nodes: Sequence[Node], places: Places, logs: Path, stopped: Callable[[], bool]) -> str | None:
        """Have every node fetch the channels that does not have them, and wait for that, or until it is `stopped`.

        A node that cannot be reached is left out: whatever is started there next is told so. `logs` takes what the
        programs of the nodes say besides. Returns why the channels cannot be had. Raises OSError.
        """
        for node in nodes:
            had = self._disks.get(node.name)
            if had is not None and (had.is_lost or had.failed is not None):
                had.end()
                self._left.append(had)
                had = None
            if had is None:
                self._disks[node.name] = self._started(node, places, logs)
        filled = [self._disks[node.name] for node in nodes]

        def failed() -> str | None:
            return next((each.failed for each in filled if each.failed is not None), None)

        self._loop.run_until(lambda: stopped() or failed() is not None or all(each.is_settled for each in filled))
        return None if stopped() else failed()

    def on(self, node: Node) -> JobFolder | None:
        """A folder that has the channels of a node as that of a job has its own; None where they are not there."""
        disk = self._disks.get(node.name)
        return None if disk is None or not disk.is_ready else JobFolder(Path(disk.place))

    def close(self) -> None:
        """Have all of it removed, and wait for that."""
        disks = [*self._disks.values(), *self._left]
        for disk in disks:
            disk.end()
        self._loop.run_until(lambda: all(disk.is_over for disk in disks), REMOVE_SECONDS)
        for disk in disks:
            disk.kill()
        # Whoever killed the program of a node left what it has.
        left = [disk for disk in disks if disk.place and disk.code != 0]
        waiting = {self._children.start(disk.removal, os.environ, lambda code: None) for disk in left}
        self._loop.run_until(lambda: not waiting & self._children.pids, REMOVE_SECONDS)

    def _started(self, node: Node, places: Places, logs: Path) -> _Disk:
        make_folder(logs)
        argv = (*bare(keeper.__file__, str(self._folder.path)), ",".join(places.hosts_on(node)))
        return _Disk(node, argv, self._environment, logs / f"{STEP}-{node.name}.log", self._loop, self._children)


def disks_of(allocation: SlurmAllocation, plan: Plan, folder: JobFolder, loop: Loop, children: Children) -> LocalDisks:
    """Those of the nodes of an allocation, which has one job."""
    if not isinstance(allocation.disks, LocalDisks):
        allocation.disks = LocalDisks(plan, folder, allocation.environment, loop, children)
    return allocation.disks


class _Disk:
    """That of one node, by the program that keeps it."""

    def __init__(
        self,
        node: Node,
        argv: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        loop: Loop,
        children: Children,
    ) -> None:
        """Start the program. Raises OSError."""
        self.place = ""
        self.is_ready = self.is_lost = self._is_ending = False
        self.failed: str | None = None
        """Why the channels cannot be had there."""
        self.code: int | None = None
        """How the program ended."""
        self._node = node
        self._step = steps.on(node.name, *argv, name=STEP)
        self._environment = environment
        self._log = log
        self._loop = loop
        self._children = children
        self._launches = 0
        self._start()

    def _start(self) -> None:
        self._launches += 1
        self.code = None
        self._said = b""
        theirs, self._input = os.pipe()
        self._output, writes = os.pipe()
        said = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._since = os.fstat(said).st_size
        try:
            self._pid = self._children.start(self._step, self._environment, self._ended, writes, said, stdin=theirs)
        finally:
            for fd in (theirs, writes, said):
                os.close(fd)
        self._loop.on_readable(self._output, self._hear)

    def _start_again(self) -> None:
        if not self._is_ending:
            self._start()

    @property
    def is_over(self) -> bool:
        return self.code is not None

    @property
    def is_settled(self) -> bool:
        """Whether it is known if the channels are there."""
        return self.is_ready or self.is_lost or self.failed is not None

    @property
    def removal(self) -> Sequence[str]:
        """The command that removes what is there."""
        return steps.on(self._node.name, "rm", "-rf", "--", self.place)

    def end(self) -> None:
        """Have the program remove what is there, and end."""
        self._is_ending = True
        self._close_input()

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def kill(self) -> None:
        """End what does not end."""
        if not self.is_over:
            signal_group(self._pid, signal.SIGKILL)

    def _hear(self) -> None:
        data = os.read(self._output, 1 << 16)
        if not data:
            self._loop.forget(self._output)
            os.close(self._output)
            self._output = -1
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            try:
                kind, text = json.loads(line)
            except (ValueError, TypeError):  # a site's TaskProlog prints to the same output
                continue
            if kind == keeper.AT:
                self.place = text
            elif kind == keeper.READY:
                self.is_ready = True
            elif kind == keeper.FAILED and self.failed is None:
                self.failed = f"{text} (on {self._node.name})"

    def _ended(self, code: int) -> None:
        while self._output >= 0:
            self._hear()  # what it has said before
        self.code = code
        if self.is_settled:
            return
        why = steps.why_not_launched(self._log, self._since)
        if steps.may_be_launched_later(why) and self._launches < steps.LAUNCHES:
            self._close_input()
            self._loop.after(steps.LAUNCH_AGAIN_SECONDS, self._start_again)
            return
        if steps.is_of_ended_job(why):
            return
        if steps.lacks_node(why):
            self.is_lost = True
            return
        said = ""
        with suppress(OSError):
            said = self._log.read_bytes()[self._since :].decode(errors="replace").strip().rpartition("\n")[2]
        what = f"the step that fetches the channels on {self._node.name} ended with {code}"
        self.failed = f"{what}: {said or 'it said nothing'}; see {self._log}"
