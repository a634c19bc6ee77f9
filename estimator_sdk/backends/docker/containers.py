"""The containers of one attempt: made and started in parallel, watched, signalled, removed."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import NO_RANK, STDERR, STDOUT, FrameWriter
from estimator_container.runtime.loop import Loop

from ...plan.plan import HostPlan, Plan
from ...values.debugging import debug
from ...values.home import JobFolder
from ..supervised import detached
from ..supervised.agents import channel_places
from ..supervised.supervisor import base_directory
from ..supervised.supervisor.hosts import NotStarted, OnHostEnded
from . import container, engine, network, reaper, verdicts
from .container import INSIDE, HostContainer
from .network import Network

if TYPE_CHECKING:
    from docker.types.daemon import CancellableStream

    from .pip_settings import PipSettings

T = TypeVar("T")

INTERFACE = "eth0"
CODE_IN_CONTAINER = f"{contract.DEFAULT_BASE_DIR}/input/sourcedir.tar.gz"
LAST_OUTPUT_SECONDS = 5.0  # that the engine has to hand over the last output of a container that has ended
PARALLEL = 4  # calls to the engine at a time; more gain nothing
ENGINE_LOST = 255  # the exit code of a host whose engine went away
KILLED = 128 + signal.SIGKILL


class DockerHosts:
    """The hosts of one attempt as containers."""

    def __init__(self, plan: Plan, folder: JobFolder, attempt: int, loop: Loop, on_ended: OnHostEnded) -> None:
        self._plan = plan
        self._folder = folder
        self._attempt = attempt
        self._loop = loop
        self._on_ended = on_ended
        self._client = engine.connect()
        self._own_toolkit = engine.has_toolkit(self._client, plan.image or "")
        self._labels = {engine.JOB_LABEL: plan.job_name, engine.OWNER_LABEL: os.urandom(8).hex()}
        self._pip: PipSettings | None = None
        self._containers: dict[str, HostContainer] = {}
        self._exited: set[str] = set()
        self._ended: queue.SimpleQueue[tuple[str, int, Verdict | None]] = queue.SimpleQueue()
        self._wakeup = os.pipe2(os.O_CLOEXEC)
        self._copiers: dict[str, threading.Thread] = {}
        self._watchers: list[threading.Thread] = []
        self._network: Network | None = None
        self._events: CancellableStream | None = None
        self._last_steps: threading.Thread | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Raises NotStarted; `close` removes what there is by then."""
        import docker

        secret = os.urandom(contract.SECRET_BYTES)
        if self._own_toolkit:
            from . import pip_settings

            self._pip = pip_settings.for_code(self._plan.code, os.environ, INSIDE)
        for host in self._plan.hosts:
            self._write_base_directory(host, secret)
        self._reaper = detached.start(reaper.__file__, f"{self._plan.job_name} {self._labels[engine.OWNER_LABEL]}")
        self._loop.on_readable(self._wakeup[0], self._collect)
        try:
            self._network = self._make_network()
            _in_parallel(self._create, self._plan.hosts)
            if not self._own_toolkit:
                self._copiers = {name: _thread(self._copy_output, name, made.output()) for name, made in self._each()}
            else:
                _thread(self._hear)
            _in_parallel(lambda made: made.start(), self._containers.values())
        except (docker.errors.DockerException, OSError) as error:
            lost = verdicts.engine_lost(self._client, "the containers were started")
            raise NotStarted(
                Verdict(Kind.PLATFORM, lost) if lost else verdicts.refused(self._plan, engine.words(error))
            ) from None
        self._watchers = [_thread(self._watch, name, made) for name, made in self._each()]

    def signal(self, signum: int) -> None:
        """To all at once: the engine answers a SIGKILL when the container and its network are down, which lasts."""
        import docker

        if signum == signal.SIGTERM and self._own_toolkit:
            for name, _ in self._each():
                Path(self._layout(name).stop_request).touch()

        def tell(made: HostContainer) -> None:
            with contextlib.suppress(docker.errors.DockerException, OSError):
                made.signal(signum)  # if it has ended, or the engine has, its watcher tells

        _in_parallel(tell, self._containers.values())

    def close(self) -> None:
        import docker

        try:
            if len(self._exited) < len(self._containers):
                _in_parallel(lambda made: made.remove(), self._containers.values())
                for watcher in self._watchers:
                    watcher.join(LAST_OUTPUT_SECONDS)
            if not self._own_toolkit and os.getuid() != 0:
                self._give_files_to_the_user()
        except (docker.errors.DockerException, OSError) as error:
            print(f"{self._plan.job_name} could not be removed as usual: {error}", file=sys.stderr)
        for host in self._plan.hosts:
            Path(self._layout(host.name).pip_settings).unlink(missing_ok=True)  # if it was stopped before it was read
        self._last_steps = _thread(self._remove_the_rest)

    def wait_until_gone(self) -> None:
        if self._last_steps is not None:
            self._last_steps.join()

    def _remove_the_rest(self) -> None:
        """In a thread of its own, for the kernel takes its time over each host's part of the network."""
        import docker

        for watcher in self._watchers:
            watcher.join(engine.DETACH_SECONDS)
        with contextlib.suppress(Exception):  # of an engine that is gone, or a way to it that cannot be closed
            if self._events is not None:
                self._events.close()
        try:
            # By what they are and not by the job's name, which may be another's by now.
            for made in self._containers.values():
                made.remove()
            if self._network is not None:
                engine.remove_network(self._client.api, self._network.identity)
        except (docker.errors.DockerException, OSError) as error:
            print(f"what is left of {self._plan.job_name} on the engine: {error}", file=sys.stderr)
            return  # the reaper tries again when this process is gone
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.write(reaper.DONE)
            self._reaper.stdin.close()

    def _each(self) -> list[tuple[str, HostContainer]]:
        return list(self._containers.items())

    def _name(self, of: str) -> str:
        return f"{self._plan.job_name}-{self._attempt}-{of}"

    def _layout(self, host: str) -> Layout:
        return Layout(str(self._folder.host(host)))

    def _write_base_directory(self, host: HostPlan, secret: bytes) -> None:
        layout = self._layout(host.name)
        base_directory.write(self._plan, host.name, layout, INTERFACE)
        if self._own_toolkit:
            base_directory.write_secret(layout, secret)
            base_directory.write_environment(layout, self._plan.environment)
        if self._pip is not None:
            self._pip.write(layout)
        if self._plan.code is not None:
            shutil.copy(self._plan.code, Path(layout.input, Path(CODE_IN_CONTAINER).name))  # with its mode
        for source, target in self._channel_mounts(host.name, layout):
            # The engine would make the missing mount points, and they would belong to root.
            base_directory.make_mount_point(Path(target), is_folder=Path(source).is_dir())

    def _channel_mounts(self, host: str, layout: Layout) -> list[tuple[str, str]]:
        """Pairs of a path on this machine and where it belongs below a base directory."""
        mounts = []
        for channel in self._plan.channels:
            source = channel_places.place(channel, self._folder, host)
            if source is not None:
                place = Path(layout.data, channel.name)
                mounts.append((str(source), str(place if source.is_dir() else place / source.name)))
        return mounts

    def _make_network(self) -> Network:
        api, name, hosts = self._client.api, self._name("network"), [host.name for host in self._plan.hosts]
        labels = self._labels
        if self._own_toolkit or len(hosts) == 1:  # it asks for no host that may be gone
            return network.create(api, name, labels)
        return network.create_fixed(api, name, labels, hosts)

    def _create(self, host: HostPlan) -> None:
        mounts = [(self._layout(host.name).base, INSIDE.base, False)]
        if self._plan.checkpoint_path != INSIDE.checkpoints:
            mounts.append((self._layout(host.name).checkpoints, self._plan.checkpoint_path, False))
        mounts += [(source, target, True) for source, target in self._channel_mounts(host.name, INSIDE)]
        mounts += self._pip.mounts if self._pip is not None else []
        assert self._network is not None
        name = self._name(host.name)
        made = container.create(
            self._client.api, self._plan, host, name, self._network, self._labels, mounts, self._own_toolkit
        )
        self._containers[host.name] = made
        debug("%s: container %s is made", self._plan.job_name, name)

    def _watch(self, host: str, watched: HostContainer) -> None:
        """In a thread of its own: tell the loop when a container has ended, and remove it."""
        found = None
        try:
            code = watched.wait()
            if code == KILLED and self._plan.memory is not None and watched.was_out_of_memory():
                found = verdicts.out_of_memory(self._plan, host)
        except Exception as error:  # the engine went away, in one of many ways
            print(f"{host}: the Docker engine no longer tells of it: {error}", file=sys.stderr)
            lost = verdicts.engine_lost(self._client, f"{host} ran")
            code, found = ENGINE_LOST, Verdict(Kind.PLATFORM, lost, host) if lost else None
        if host in self._copiers:
            self._copiers[host].join(LAST_OUTPUT_SECONDS)
        self._tell(host, code, found)
        with contextlib.suppress(Exception):  # `close` does what cannot be done now, and says why it cannot
            watched.remove()

    def _hear(self) -> None:
        """In a thread of its own: tell the loop that a container has ended as soon as the engine knows.

        The watcher hears of it when the container has left its network, which lasts, and where others leave at the
        same time they queue.
        """
        hosts = {self._name(host.name): host.name for host in self._plan.hosts}
        chosen = {"label": f"{engine.JOB_LABEL}={self._plan.job_name}", "type": "container", "event": "die"}
        with contextlib.suppress(Exception):  # the watchers tell of everything, only later
            self._events = self._client.api.events(filters=chosen, decode=True)
            for event in self._events:
                facts = event["Actor"]["Attributes"]
                host, code = hosts.get(facts["name"]), int(facts["exitCode"])
                if host is not None and not (code == KILLED and self._plan.memory is not None):
                    self._tell(host, code, None)

    def _tell(self, host: str, code: int, found: Verdict | None) -> None:
        self._ended.put((host, code, found))
        os.write(self._wakeup[1], b".")

    def _copy_output(self, host: str, chunks: Iterator[tuple[bytes | None, bytes | None]]) -> None:
        """In a thread of its own: put what an image without our toolkit writes into the host's frames."""
        frames = FrameWriter(self._layout(host).frames)
        for out, err in chunks:
            for number, data in ((STDOUT, out), (STDERR, err)):
                if data:
                    frames.write(NO_RANK, number, data)

    def _collect(self) -> None:
        os.read(self._wakeup[0], 4096)
        while not self._ended.empty():
            host, code, found = self._ended.get()
            if host in self._exited:
                continue
            self._exited.add(host)
            # The engine reports the end by a signal as a shell does.
            of_signal = 128 < code < 128 + 65 and code != contract.EXIT_STOPPED
            self._on_ended(host, 128 - code if of_signal else code, found)

    def _give_files_to_the_user(self) -> None:
        """Root in a container gives away what root in the other containers made."""
        from docker.types import Mount

        place = contract.DEFAULT_BASE_DIR
        self._client.containers.run(
            self._plan.image,
            ["-R", "-h", f"{os.getuid()}:{os.getgid()}", place],
            entrypoint="chown",
            user="0",
            remove=True,
            network_mode="none",
            labels=self._labels,
            mounts=[Mount(place, str(self._folder.hosts), type="bind")],
        )


def _in_parallel(call: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(call, items))


def _thread(call: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=call, args=arguments, daemon=True)
    thread.start()
    return thread
