"""The program that keeps one host of a job on its machine: it runs the toolkit, and sends on what that leaves.

It belongs to the job's supervisor: when the connection to that is lost, it ends the host and itself, and nothing of
the job is left here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from estimator_container.contract.names import Layout
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.children import Children, become_subreaper, kill_descendants, kill_descendants_but
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.runtime.loop import Loop

from .....errors import EstimatorError
from .....values.home import home, make_folder, secured
from ....supervised.watch import Watch
from .. import words
from ..copying import windows
from ..copying.measured import MeasuredFiles
from ..copying.trees import PIECE, Item, Outbox, TreeLanding, piece, tree
from ..facts import HOSTS, address_of_this_machine, boot, own_home
from ..publishing import KeptAgent
from ..room.claim import Leaseholder
from ..running.choice import kept_host
from ..running.place import HostPlace, KeptHost
from .leftovers import log_to, remove_leftovers, remove_temporary_folders, tell_base
from .preparation import CommonFolder, UnfitKeeper, detach, mesh_to_supervisor

MEASURED_SECONDS = 2.0
"""Between two times that what the host has measured is sent; it has a row for so many seconds."""
_WRITTEN = ("model", "output")
_OWN = ("output/logs", "output/alive", "output/temporary-folders", "output/training-steps")
"""What is of no use on another machine."""


class Keeper:
    """One host. See `MeshObserver` for what the supervisor says."""

    def __init__(self, folder: Path, common: CommonFolder, given: words.KeeperSettings, home: str) -> None:
        """`home` is as `facts.own_home` says, or empty."""
        become_subreaper()
        self._own = folder
        self._address = given.address
        self._home = home
        self._common = common
        self._base = str(folder)
        self._loop = Loop()
        self._children = Children(self._loop)
        self._is_over = False
        self._is_elsewhere = True
        """Whether the supervisor has the host's files only as far as they are sent."""
        self._host: KeptHost | None = None
        """The last one that was started."""
        self._toolkit: int | None = None
        """The process of its command, as long as that runs."""
        self._lifeline = os.pipe()
        self._sent: tuple[int, int] = (0, 0)
        """Of the frames: the file's inode, and how many of its bytes."""
        self._watch = Watch()
        self._measured = MeasuredFiles()
        self._unreadable: list[str] = []
        """What the host has left that cannot be read, with the reasons."""
        self._outbox = Outbox(lambda *item: self._mesh.send(words.ITEM, *item))
        self._agent = KeptAgent(self._loop, self._children, self._say_of_agent)
        sys.path += [each for each in given.search_path if each not in sys.path]
        self._mesh = mesh_to_supervisor(self._loop, given, self)
        self._claim = Leaseholder(self._loop, self._mesh.send)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.on_signal(signum, self._end)
        if self._watch.fileno() >= 0:
            self._loop.on_readable(self._watch.fileno(), self._see_frames)

    def run(self) -> None:
        """Keep the host until its supervisor has done with it, or is gone."""
        self._loop.run_until(lambda: self._is_over)
        if self._host is not None:
            self._host.end()
        kill_descendants()
        self._claim.close()
        remove_temporary_folders(self._base)
        self._common.remove()
        shutil.rmtree(self._own, ignore_errors=True)

    # What the supervisor says.

    def on_joined(self, host: str) -> None:
        self._mesh.begin_to_beat()
        self._mesh.send(words.ABOUT, self._address or address_of_this_machine(), boot(), self._home)

    def on_lost(self, host: str, how: Loss) -> None:
        print("the supervisor is lost: the host ends", file=sys.stderr)
        self._end()

    def on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == words.ITEM:
            self._take(fields)
        elif kind == words.TAKEN:
            self._outbox.taken()
        elif kind == words.CLEAR:
            self._clear(fields[0])
        elif kind == words.RUN:
            self._run(words.RunSettings(**json.loads(fields[0])))
        elif kind == words.KILL:
            self._kill()
        elif kind == words.FLUSH:
            self._flush()
        elif kind == words.AGENT:
            self._begin_agent(fields[0])
        elif kind == words.TELL_AGENT:
            self._agent.tell(*fields)
        elif kind == words.WINDOW:
            windows.put(Layout(self._base), fields[0])
        elif kind == words.LEAVE:
            self._end()
        else:
            self._claim.hear(kind, fields)

    def _end(self) -> None:
        self._is_over = True

    def _clear(self, name: str) -> None:
        """What is made there next is new, though it may have the number of a file that was."""
        shutil.rmtree(Path(self._base, name), ignore_errors=True)
        if name in _WRITTEN:
            self._sent = (0, 0)
            self._measured = MeasuredFiles()

    def _take(self, item: list[str]) -> None:
        try:
            TreeLanding(self._base).take(*item)
        except (OSError, ValueError) as error:
            self._mesh.send(words.NOT_RUN, str(error))
        self._mesh.send(words.TAKEN)

    # The host.

    def _run(self, settings: words.RunSettings) -> None:
        self._is_elsewhere = settings.base is None
        self._base = settings.base or str(self._own)
        layout, reads = Layout(self._base), self._lifeline[0]
        if not self._is_elsewhere:
            tell_base(self._own, self._base)
        log = f"{self._own}.log" if self._is_elsewhere else settings.log
        os.set_inheritable(reads, True)
        try:
            make_folder(os.path.dirname(layout.frames))  # noqa: PTH120
            Path(layout.frames).touch(0o600)
            self._watch.add(Path(layout.frames))
            place = HostPlace(self._own.name, self._base, self._common.path, reads, log)
            host = self._host = kept_host(settings, place, self._children)
            written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                start = self._children.start
                self._toolkit = start(host.argv, host.environment, self._ended, written, written, (), host.stdin)
            finally:
                os.close(written)
            self._send_measured_again()
        except OSError as error:
            self._mesh.send(words.NOT_RUN, str(error))
        finally:
            os.set_inheritable(reads, False)

    def _kill(self) -> None:
        if self._toolkit is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._toolkit, signal.SIGKILL)

    def _ended(self, code: int) -> None:
        self._toolkit = None
        assert self._host is not None
        self._host.ended(code, self._is_gone)

    def _is_gone(self, code: int, why_not_begun: str | None) -> None:
        kill_descendants_but(self._children.pids)
        if code < 0:
            remove_temporary_folders(self._base)
        self._send_all()
        said = (words.ENDED, str(code)) if why_not_begun is None else (words.NOT_RUN, why_not_begun)
        self._outbox.put(iter(()), lambda: self._mesh.send(*said, *self._unreadable[: words.MOST_NAMED]))

    # What publishes its checkpoints.

    def _begin_agent(self, settings: str) -> None:
        try:
            self._agent.begin(settings, Layout(self._base))
        except OSError as error:
            self._mesh.send(words.AGENT_SAYS, "failed", str(error))

    def _say_of_agent(self, *fields: str) -> None:
        """After its events."""
        self._send_frames()
        self._outbox.put(iter(()), lambda: self._mesh.send(*fields))

    # What it leaves.

    def _flush(self) -> None:
        self._send_all()
        self._outbox.put(iter(()), self._flushed)

    def _flushed(self) -> None:
        if self._is_elsewhere:
            for name in _WRITTEN:
                self._clear(name)
        self._mesh.send(words.FLUSHED)

    def _see_frames(self) -> None:
        self._watch.clear()
        self._send_frames()

    def _send_frames(self) -> None:
        if self._is_elsewhere:
            self._outbox.put(self._new_frames())

    def _new_frames(self) -> Iterator[Item]:
        """Those that have been written since; a new file begins at its beginning."""
        path = Path(self._base, words.FRAMES)
        try:
            inode = path.stat().st_ino
            if inode != self._sent[0]:
                self._sent = (inode, 0)
                self._watch.add(path)
            with path.open("rb") as file:
                file.seek(self._sent[1])
                while data := file.read(PIECE):
                    offset = self._sent[1]
                    self._sent = (inode, offset + len(data))
                    yield piece(words.FRAMES, offset, data)
        except FileNotFoundError:
            return

    def _send_measured_again(self) -> None:
        """As long as the host runs."""
        if self._is_elsewhere and self._toolkit is not None:
            self._outbox.put(self._measured.news(self._base), self._have_measured_sent)

    def _have_measured_sent(self) -> None:
        self._loop.after(MEASURED_SECONDS, self._send_measured_again)

    def _send_all(self) -> None:
        self._send_frames()
        if self._is_elsewhere:
            self._outbox.put(self._measured.news(self._base))
            self._unreadable = []
            self._outbox.put(tree(self._base, _WRITTEN, without=_OWN, unreadable=self._unreadable))


def main(name: str) -> int:
    """Keep the host that standard input describes, in a folder: below the user's home for jobs, if it has no path.

    Nothing happens where that says nothing: who has started the program had nothing to do for it.
    """
    path, hosts, its_home, why = Path(name), None, "", ""
    if not path.is_absolute():
        detach()
        try:
            hosts, its_home = secured(home() / HOSTS), own_home()
            path = hosts / name
            log_to(f"{path}.log")
        except (OSError, EstimatorError) as error:
            why = str(error)
    if given := sys.stdin.buffer.read():
        _keep(path, words.KeeperSettings(**json.loads(given)), its_home, why)
    elif hosts is not None:
        shutil.rmtree(path, ignore_errors=True)  # which may have channels
    with contextlib.suppress(OSError):
        Path(f"{path}.log").unlink()
    if hosts is not None:
        remove_leftovers(hosts)
    return 0


def _keep(path: Path, given: words.KeeperSettings, its_home: str, why: str) -> None:
    """`why` says why there can be no host here, or is empty."""
    try:
        if not why:
            make_folder(path)
            common = CommonFolder(given.common)
    except (OSError, ConfigurationError) as error:
        shutil.rmtree(path, ignore_errors=True)
        why = str(error)
    if why:
        UnfitKeeper(given, why).run()
    else:
        Keeper(path, common, given, its_home).run()
