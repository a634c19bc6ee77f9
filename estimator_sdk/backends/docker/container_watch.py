"""Which containers have ended: threads ask the engine, and the supervisor's loop is told."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from estimator_container.contract.names import EXIT_STOPPED
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime.loop import Loop

from . import engine, verdicts

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.types.daemon import CancellableStream

    from ...plan.plan import Plan
    from ..supervised.supervisor.hosts import OnHostEnded
    from .container import HostContainer

LAST_OUTPUT_SECONDS = 5.0  # that the engine has to hand over the last output of a container that has ended
ENGINE_LOST = 255  # the exit code of a host whose engine went away
KILLED = 128 + signal.SIGKILL
ENDED_BY_ENGINE = (ENGINE_LOST, KILLED, 128 + signal.SIGTERM)
"""The exit codes of containers that an engine ends as it ends, or finds dead as it is started again."""
ASK_AGAIN_SECONDS = 0.5


class ContainerWatch:
    """Tells of the end of each container once, in the thread of the loop."""

    def __init__(self, plan: Plan, client: DockerClient, loop: Loop, on_ended: OnHostEnded) -> None:
        self._told: set[str] = set()
        """The ids of the containers whose end it has told of."""
        self._hosts: dict[str, str] = {}
        """The host that a container is, by its id."""
        self._loop = loop
        self._plan = plan
        self._client = client
        self._on_ended = on_ended
        self._watchers: list[threading.Thread] = []
        self._events: CancellableStream | None = None

    def listen(self) -> None:
        """Tell of an end as soon as the engine knows of it.

        The watcher hears of it when the container has left its network, which lasts, and where others leave at the
        same time they queue.
        """
        in_thread(self._listen)

    def watch(self, host: str, container: HostContainer, output: threading.Thread | None) -> None:
        """Tell of the end of a container that was started, and remove it; `output` is what copies what it writes."""
        self._hosts[container.identity] = host
        self._watchers.append(in_thread(self._watch, host, container, output))

    def has_told_of(self, container: HostContainer) -> bool:
        """Whether it has told of the end of a container."""
        return container.identity in self._told

    def wait_for(self, container: HostContainer) -> None:
        """Wait until it has told of the end of a container, while the loop goes on."""
        self._loop.run_until(lambda: self.has_told_of(container), engine.DETACH_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait until all that are watched have ended and are removed, for each at most so many seconds."""
        for watcher in self._watchers:
            watcher.join(seconds)

    def close(self) -> None:
        """Listen no longer."""
        with contextlib.suppress(Exception):  # of an engine that is gone, or a way to it that cannot be closed
            if self._events is not None:
                self._events.close()

    def _watch(self, host: str, watched: HostContainer, output: threading.Thread | None) -> None:
        code, found = self._end_of(host, watched, is_copied=output is not None)
        if output is not None:
            output.join(LAST_OUTPUT_SECONDS)
        self._tell(watched.identity, code, found)
        with contextlib.suppress(Exception):  # `close` of the hosts does what cannot be done now, and says why
            watched.remove()

    def _end_of(self, host: str, watched: HostContainer, is_copied: bool) -> tuple[int, Verdict | None]:
        """Wait for it. An engine that is started again may have left its containers running, or have ended them.

        What a container writes that `is_copied` is cut off then, and so the container's end has come, too.
        """
        was_ended = False
        while True:
            try:
                code = watched.wait()
                if code == KILLED and self._plan.memory is not None and watched.was_out_of_memory():
                    return code, verdicts.out_of_memory(self._plan, host)
                came_back = was_ended and code in ENDED_BY_ENGINE
                return code, Verdict(Kind.PLATFORM, verdicts.engine_came_back(host), host) if came_back else None
            except Exception as error:  # the engine went away, in one of many ways
                print(f"{host}: the Docker engine says no more of this container: {error}", file=sys.stderr)
            lost = verdicts.engine_lost(self._client, f"{host} ran")
            try:
                was_ended = lost is None and not watched.is_running()
                if lost is None and is_copied and not was_ended:
                    lost = verdicts.engine_came_back(host)
            except Exception as error:
                lost = verdicts.container_lost(host, error)
            if lost is not None:
                return ENGINE_LOST, Verdict(Kind.PLATFORM, lost, host)
            time.sleep(ASK_AGAIN_SECONDS)  # it answers, and tells nobody when it will say more

    def _listen(self) -> None:
        chosen = {"label": f"{engine.JOB_LABEL}={self._plan.job_name}", "type": "container", "event": "die"}
        with contextlib.suppress(Exception):  # the watchers tell of everything, only later
            self._events = self._client.api.events(filters=chosen, decode=True)
            for event in self._events:
                code = int(event["Actor"]["Attributes"]["exitCode"])
                if not (code == KILLED and self._plan.memory is not None):
                    self._tell(event["Actor"]["ID"], code, None)

    def _tell(self, identity: str, code: int, found: Verdict | None) -> None:
        self._loop.from_thread(lambda: self._take(identity, code, found))

    def _take(self, identity: str, code: int, found: Verdict | None) -> None:
        host = self._hosts.get(identity)
        if host is not None and identity not in self._told:
            self._told.add(identity)
            # The engine reports the end by a signal as a shell does.
            of_signal = 128 < code < 128 + 65 and code != EXIT_STOPPED
            self._on_ended(host, 128 - code if of_signal else code, found)


def in_thread(call: Callable[..., None], *arguments: object) -> threading.Thread:
    """Call it in a thread that keeps no process alive."""
    thread = threading.Thread(target=call, args=arguments, daemon=True)
    thread.start()
    return thread
