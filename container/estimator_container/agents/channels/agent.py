"""The agent: a process that fetches the channels of a job, and then feeds those that are pipes.

    python -I -S agent.py FD SEARCH_PATH

FD is its end of a socket to its owner, who sends the settings. The agent answers `ready` when every file is in place
and every first FIFO is made, or `failed` with the reason, which may also come later, from a pipe. It ends when its
owner closes the socket, whatever it is doing then. An owner that needs what was fetched kills it before that: one
that only goes away was killed itself, and nobody will use or remove it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.agents.channels.channel import ChannelError, ChannelTask
from estimator_container.agents.channels.epochs import Epochs
from estimator_container.agents.channels.fetch import Links, fetch
from estimator_container.agents.channels.pipes import Pipe
from estimator_container.agents.channels.source import ChannelSource, open_source
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.runtime.wire import Unpacker, pack
from estimator_container.storage import StorageError

REPORT_SECONDS = 0.5  # between two reports of how far a channel is


@dataclass(frozen=True)
class Settings:
    """What the agent is to do."""

    channels: tuple[ChannelTask, ...]
    hosts: dict[str, str]
    """The name of each host, and its `input/data`, which takes the FIFOs."""
    links: Links
    """What stands for a file of this machine."""
    frames: str
    """The log that takes its events."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        fields = json.loads(text)
        return cls(**{**fields, "channels": tuple(map(ChannelTask.from_fields, fields["channels"]))})


class Agent:
    """Each channel has a thread, and each FIFO."""

    def __init__(self, owner: socket.socket) -> None:
        self._owner = owner
        self._unpacker = Unpacker()
        self._folders: list[str] = []
        self._answering = threading.Lock()
        self._missing = 0

    def run(self) -> None:
        """Serve until the owner is gone."""
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)  # the owner says when it is time
        while data := self._owner.recv(1 << 16):
            for _, text in self._unpacker.feed(data):
                self._begin(Settings.from_json(text))

    def remove_and_end(self) -> None:
        """Become the program that removes what was fetched: every thread that fetches ends with that."""
        os.execvp("rm", ["rm", "-rf", "--", *self._folders])

    def _begin(self, settings: Settings) -> None:
        self._settings = settings
        self._folders = [path for channel in settings.channels for path in (channel.draft, channel.target)]
        self._events = EventLog(FrameWriter(settings.frames))
        self._missing = len(settings.channels)
        for channel in settings.channels:
            self._in_a_thread(channel, lambda channel=channel: self._prepare(channel))  # type: ignore[misc]

    def _prepare(self, channel: ChannelTask) -> None:
        if channel.is_piped:
            self._open_pipes(channel)
        else:
            self._fetch(channel)
        with self._answering:
            self._missing -= 1
            if self._missing == 0:
                self._owner.sendall(pack(["ready", ""]))

    def _fetch(self, channel: ChannelTask) -> None:
        started = reported = time.monotonic()
        self._events.emit("channel_fetching", channel=channel.name, source=channel.uri)

        def progress(size: int, objects: int) -> None:
            nonlocal reported
            if time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                seconds = round(reported - started, 2)
                facts = {"channel": channel.name, "bytes": size, "objects": objects, "seconds": seconds}
                self._events.emit("channel_progress", **facts)

        source = open_source(channel)
        found = fetch(channel, source, list(self._settings.hosts), self._settings.links, progress)
        seconds = round(time.monotonic() - started, 4)
        facts = {"channel": channel.name, "bytes": found.size, "objects": found.objects, "seconds": seconds}
        self._events.emit("channel_fetched", **facts)

    def _open_pipes(self, channel: ChannelTask) -> None:
        source: ChannelSource = open_source(channel)
        epochs = Epochs(channel, source.objects(), len(self._settings.hosts))
        for number, folder in enumerate(self._settings.hosts.values()):
            pipe = Pipe(channel, source.store, epochs, number, folder)
            pipe.make(0)
            self._in_a_thread(channel, pipe.feed)
        self._events.emit("channel_piped", channel=channel.name, source=channel.uri)

    def _in_a_thread(self, channel: ChannelTask, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except (StorageError, ChannelError, OSError) as error:
                self._fail(channel, str(error))
            except Exception as error:  # whatever it is, the owner must not wait for ever
                self._fail(channel, f"{type(error).__name__}: {error}")

        threading.Thread(target=run, name=channel.name, daemon=True).start()

    def _fail(self, channel: ChannelTask, reason: str) -> None:
        what = f"the channel {channel.name!r} cannot be had from {channel.uri}: {reason}"
        with self._answering:
            self._owner.sendall(pack(["failed", what.replace("\0", "")]))


if __name__ == "__main__":
    os.umask(0o077)  # what it fetches is for this user, as all of the job's folder
    agent = Agent(socket.socket(fileno=int(sys.argv[1])))
    agent.run()
    agent.remove_and_end()
