"""The containers of one attempt: made and started in parallel, signalled, removed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import NO_RANK, STDERR, STDOUT, FrameWriter
from estimator_container.runtime.loop import Loop

from ...errors import BackendError
from ...plan.plan import HostPlan, Plan
from ...values.debugging import debug
from ...values.home import JobFolder
from ..supervised.agents import channel_places
from ..supervised.supervisor import base_directory
from ..supervised.supervisor.hosts import NotStarted, OnHostEnded
from ..supervised.supervisor.hosts_line import HostsLine, LineHere, OnAttemptFailed
from ..supervised.supervisor.policy import variables_of_attempt
from . import container, engine, network, verdicts
from .container import INSIDE, TOOLKIT_INSIDE, HostContainer
from .container_watch import LAST_OUTPUT_SECONDS, ContainerWatch, in_thread
from .network import Network
from .reaper import Reaper

if TYPE_CHECKING:
    from .pip_settings import PipSettings

T = TypeVar("T")

INTERFACE = "eth0"
CODE_IN_CONTAINER = f"{contract.DEFAULT_BASE_DIR}/input/sourcedir.tar.gz"
PARALLEL = 4  # calls to the engine at a time; more gain nothing


class DockerHosts:
    """The hosts of one attempt as containers."""

    def __init__(self, plan: Plan, folder: JobFolder, attempt: int, loop: Loop, on_ended: OnHostEnded) -> None:
        self._plan = plan
        self._folder = folder
        self._attempt = attempt
        self._loop = loop
        self._client = engine.connect(engine.JOB_SECONDS)
        self._watch = ContainerWatch(plan, self._client, loop, on_ended)
        self._own_toolkit = plan.toolkit is not None or engine.has_toolkit(self._client, plan.image or "")
        self._labels = {engine.JOB_LABEL: plan.job_name, engine.OWNER_LABEL: os.urandom(8).hex()}
        self._secret = os.urandom(contract.SECRET_BYTES)
        self._pip: PipSettings | None = None
        self._containers: dict[str, HostContainer] = {}
        self._copiers: dict[str, threading.Thread] = {}
        self._network: Network | None = None
        self._last_steps: threading.Thread | None = None
        self._reaper: Reaper | None = None
        self._has_all = True
        """Whether this process knows of all that the engine has made for it."""

    @property
    def first_host_at(self) -> str:
        return f"{self._plan.hosts[0].name}:{contract.WORLD_PORT}"

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        return LineHere(self._loop, Layout(str(self._folder.host(host))), on_failed, on_silence, self._comes_soon)

    def wait_for_machines(self) -> None:
        """There is this one."""

    def start(self) -> None:
        """Raises NotStarted; `close` removes what there is by then."""
        if self._own_toolkit:
            from . import pip_settings

            self._pip = pip_settings.for_code(self._plan.code, os.environ, INSIDE)
        for host in self._plan.hosts:
            self._write_base_directory(host)
        self._reaper = Reaper(self._plan.job_name, self._labels[engine.OWNER_LABEL])
        with self._starting():
            self._network = self._make_network()
            _in_parallel(self._create, self._plan.hosts)
            if not self._own_toolkit:
                self._copiers = {name: in_thread(self._copy_output, name, made.output()) for name, made in self._each()}
            else:
                self._watch.listen()
            _in_parallel(lambda made: made.start(), self._containers.values())
        for name, made in self._each():
            self._watch.watch(name, made, self._copiers.get(name))

    def end(self, host: str) -> None:
        with engine.asked_to(f"remove the container of {host}"):
            self._containers[host].remove()
        self._watch.wait_for(self._containers[host])

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        first = self._plan.hosts[0]
        (again,) = (each for each in self._plan.hosts if each.name == host)
        if again is not first:
            # By its name, which another container will have if this first host is lost, too.
            port = first_host_at.rpartition(":")[2]
            addresses = {contract.HOST_ADDRESSES: json.dumps({first.name: f"{first.name}:{port}"})}
            again = replace(again, environment={**again.environment, **addresses})
        self._attempt = attempt  # so that its container has a name of its own
        self._write_base_directory(again)
        with self._starting():
            self._create(again)
            self._containers[host].start()
        self._watch.watch(host, self._containers[host], None)

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """Around what asks the engine for containers. Raises NotStarted for what the engine says against it."""
        import docker

        try:
            yield
        except (docker.errors.DockerException, OSError) as error:
            self._has_all = False  # another call, if not the one of this error, may have left something
            lost = verdicts.engine_lost(self._client, "the containers were started")
            raise NotStarted(
                Verdict(Kind.PLATFORM, lost) if lost else verdicts.refused(self._plan, engine.words(error))
            ) from None

    def signal(self, signum: int) -> None:
        """To all at once: the engine answers a SIGKILL when the container and its network are down, which lasts."""
        import docker

        if signum == signal.SIGTERM and self._own_toolkit:
            for name, _ in self._each():
                with contextlib.suppress(FileNotFoundError):  # of a lost host, while another attempt is prepared
                    Path(self._layout(name).stop_request).touch()

        def tell(made: HostContainer) -> None:
            with contextlib.suppress(docker.errors.DockerException, OSError):
                made.signal(signum)  # if it has ended, or the engine has, its watcher tells

        _in_parallel(tell, self._containers.values())

    def close(self) -> None:
        import docker

        try:
            if not all(map(self._watch.has_told_of, self._containers.values())):
                _in_parallel(lambda made: made.remove(), self._containers.values())
                self._watch.wait(LAST_OUTPUT_SECONDS)
            if not self._own_toolkit and os.getuid() != 0:
                self._give_files_to_the_user()
        except (docker.errors.DockerException, OSError) as error:
            print(f"{self._plan.job_name} could not be removed in the usual way: {error}", file=sys.stderr)
        for host in self._plan.hosts:
            Path(self._layout(host.name).pip_settings).unlink(missing_ok=True)  # if it was stopped before it was read
        self._last_steps = in_thread(self._remove_the_rest)

    def wait_until_gone(self) -> None:
        if self._last_steps is not None:
            self._last_steps.join()

    def _remove_the_rest(self) -> None:
        """In a thread of its own, for the kernel takes its time over each host's part of the network."""
        import docker

        self._watch.wait(engine.DETACH_SECONDS)
        self._watch.close()
        try:
            # By what they are and not by the job's name, which may be another's by now.
            for made in self._containers.values():
                made.remove()
            if self._network is not None:
                engine.remove_network(self._client.api, self._network.identity)
        except (docker.errors.DockerException, OSError) as error:
            print(f"{self._plan.job_name} could not be removed from the engine: {error}", file=sys.stderr)
            self._has_all = False
        if self._reaper is not None:
            self._reaper.end(self._has_all)

    @functools.cached_property
    def _comes_soon(self) -> bool:
        """Whether our toolkit is the first that runs: what an image's own ENTRYPOINT does may take its time."""
        if not self._own_toolkit or not self._plan.keeps_entrypoint:
            return self._own_toolkit
        with contextlib.suppress(BackendError):
            return not engine.has_entrypoint(self._client, self._plan.image or "")
        return False

    def _each(self) -> list[tuple[str, HostContainer]]:
        return list(self._containers.items())

    def _name(self, of: str) -> str:
        return f"{self._plan.job_name}-{self._attempt}-{of}"

    def _layout(self, host: str) -> Layout:
        return Layout(str(self._folder.host(host)))

    def _write_base_directory(self, host: HostPlan) -> None:
        layout = self._layout(host.name)
        base_directory.write(self._plan, host.name, layout, INTERFACE)
        if self._own_toolkit:
            base_directory.write_secret(layout, self._secret)
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
        assert self._reaper is not None
        with self._reaper.asking_for(name):
            if self._own_toolkit or len(hosts) == 1:  # it asks for no host that may be gone
                return network.create(api, name, self._labels)
            return network.create_fixed(api, name, self._labels, hosts)

    def _create(self, host: HostPlan) -> None:
        mounts = [(self._layout(host.name).base, INSIDE.base, False)]
        if self._plan.checkpoint_path != INSIDE.checkpoints:
            mounts.append((self._layout(host.name).checkpoints, self._plan.checkpoint_path, False))
        mounts += [(source, target, True) for source, target in self._channel_mounts(host.name, INSIDE)]
        mounts += self._pip.mounts if self._pip is not None else []
        if self._plan.toolkit is not None:
            mounts.append((self._plan.toolkit, TOOLKIT_INSIDE, True))
        assert self._network is not None and self._reaper is not None
        if self._own_toolkit:
            of_attempt = variables_of_attempt(self._plan, self._attempt)
            host = replace(host, environment={**host.environment, **of_attempt})
        name = self._name(host.name)
        of_job = (self._network, self._labels, mounts, self._own_toolkit)
        with self._reaper.asking_for(name):
            made = container.create(self._client.api, self._plan, host, name, *of_job)
        self._containers[host.name] = made
        debug("%s: container %s is created", self._plan.job_name, name)

    def _copy_output(self, host: str, chunks: Iterator[tuple[bytes | None, bytes | None]]) -> None:
        """In a thread of its own: put what an image without our toolkit writes into the host's frames."""
        frames = FrameWriter(self._layout(host).frames)
        for out, err in chunks:
            for number, data in ((STDOUT, out), (STDERR, err)):
                if data:
                    frames.write(NO_RANK, number, data)

    def _give_files_to_the_user(self) -> None:
        """Root in a container gives away what root in the other containers made."""
        from docker.types import Mount

        place = contract.DEFAULT_BASE_DIR
        name = self._name("chown")
        with contextlib.nullcontext() if self._reaper is None else self._reaper.asking_for(name):
            self._client.containers.run(
                self._plan.image,
                ["-R", "-h", f"{os.getuid()}:{os.getgid()}", place],
                entrypoint="chown",
                user="0",
                name=name,
                remove=True,
                network_mode="none",
                labels=self._labels,
                mounts=[Mount(place, str(self._folder.hosts), type="bind")],
            )


def _in_parallel(call: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(call, items))
