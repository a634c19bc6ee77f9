"""The agent: a process that fetches the channels of a job, and then feeds those that are pipes.

It answers `ready` when every file is in place and every first FIFO is made, or `failed` with the reason, which may also
come later, from a pipe. It ends when its owner closes the socket, whatever it is doing then. An owner that needs what
was fetched kills it before that: one that only goes away was killed itself, and nobody will use or remove it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import TypeVar

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.agents.agent import Agent
from estimator_container.agents.background import BackgroundCall
from estimator_container.agents.channels.channel import ChannelError, ChannelTask
from estimator_container.agents.channels.epochs import Epochs
from estimator_container.agents.channels.fetch import fetch
from estimator_container.agents.channels.pipes import Pipe
from estimator_container.agents.channels.settings import ChannelSettings
from estimator_container.agents.channels.source import open_source
from estimator_container.contract.agent_events import ChannelFetched, ChannelFetching, ChannelPiped, ChannelProgress
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.storage import StorageError

REPORT_SECONDS = 0.5  # between two reports of how far a channel is

T = TypeVar("T")


class ChannelAgent(Agent):
    """Each channel has a thread, and each FIFO."""

    def __init__(self, owner: socket.socket) -> None:
        super().__init__(owner)
        self._folders: list[str] = []
        self._missing = 0

    def _begin(self, settings: str) -> None:
        self._settings = ChannelSettings.from_json(settings)
        self._events = EventLog(FrameWriter(self._settings.frames))
        channels = self._settings.channels
        self._folders = [path for channel in channels for path in (channel.draft, channel.target)]
        self._missing = len(channels)
        for channel in channels:
            self._prepare(channel)

    def _owner_gone(self) -> None:
        """Become the program that removes what was fetched: every thread that fetches ends with that."""
        os.execvp("rm", ["rm", "-rf", "--", *self._folders])

    def _prepare(self, channel: ChannelTask) -> None:
        if channel.is_piped:
            self._try(channel, lambda: self._make_pipes(channel), lambda pipes: self._feed(channel, pipes))
        else:
            self._try(channel, lambda: self._fetch(channel), lambda _: self._prepared())

    def _prepared(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._answer("ready", "")

    def _fetch(self, channel: ChannelTask) -> None:
        started = reported = time.monotonic()
        self._events.emit(ChannelFetching(channel.name, channel.uri))

        def progress(size: int, objects: int) -> None:
            nonlocal reported
            if time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                self._events.emit(ChannelProgress(channel.name, size, objects, round(reported - started, 2)))

        source = open_source(channel)
        told = self._settings
        found = fetch(channel, source, list(told.hosts), told.links, progress, told.wanted)
        seconds = round(time.monotonic() - started, 4)
        self._events.emit(ChannelFetched(channel.name, found.size, found.objects, seconds))

    def _make_pipes(self, channel: ChannelTask) -> list[Pipe]:
        source = open_source(channel)
        epochs = Epochs(channel, source.objects(), len(self._settings.hosts))
        pipes = [
            Pipe(channel, source.store, epochs, number, folder)
            for number, folder in enumerate(self._settings.hosts.values())
        ]
        for pipe in pipes:
            pipe.make(0)
        self._events.emit(ChannelPiped(channel.name, channel.uri))
        return pipes

    def _feed(self, channel: ChannelTask, pipes: list[Pipe]) -> None:
        for pipe in pipes:
            self._try(channel, pipe.feed, lambda _: None)
        self._prepared()

    def _try(self, channel: ChannelTask, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do in the background what a channel needs, and `done` with the result; or say why that cannot be."""

        def ended(call: BackgroundCall[T]) -> None:
            try:
                result = call.result()
            except (StorageError, ChannelError, OSError) as error:
                self._fail(channel, str(error))
            except Exception as error:  # whatever it is, the owner must not wait for ever
                self._fail(channel, f"{type(error).__name__}: {error}")
            else:
                done(result)

        self.in_background(work, ended)

    def _fail(self, channel: ChannelTask, reason: str) -> None:
        self._answer("failed", f"the channel {channel.name!r} cannot be fetched from {channel.uri}: {reason}")


if __name__ == "__main__":
    os.umask(0o077)  # what it fetches is for this user, as all of the job's folder
    ChannelAgent(socket.socket(fileno=int(sys.argv[1]))).run()
