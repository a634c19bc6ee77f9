"""A look into an image that is not ours: a container of it that runs for a moment, without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import InvalidArgument
from .. import engine, verdicts
from ..container import TOOLKIT_INSIDE, home_of_user, started_by
from ..engine import ImageDescription
from . import look_inside

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

PYTHON = "python3"
MODULES = ("horovod", "mpi4py", "pip", "tensorflow", "torch")
"""What scripts ask of an image by name, and what installs their requirements."""
SECONDS = 60.0
"""How long a look may take: an ENTRYPOINT that does something else than what it is told may not end."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The engine's own for an image without one (`DefaultPathEnvUnix` in moby)."""
_IS_FOLDER = 1 << 31
"""A bit of the modes that the engine reports (`fs.ModeDir` of Go)."""
_MAY_BE_RUN = 0o111
_SHOWN = 300  # characters of what an image says instead of an answer


@dataclass(frozen=True)
class Inside:
    """What a look into an image has found."""

    has_train: bool = False
    """Whether it has a `train` program on its PATH; then nothing else was looked for."""
    python: tuple[int, ...] = ()
    """The version of the `python3` on its PATH; empty where there is none."""
    keeps_entrypoint: bool = True
    """Whether its ENTRYPOINT, if it has one, starts what stands behind it, and passes signals on."""
    search_path: str = ""
    """Its own PYTHONPATH."""
    modules: tuple[str, ...] = ()
    """Those of `MODULES` that this Python has."""
    without_cuda: tuple[str, ...] = ()
    """The frameworks of which it has a build without CUDA."""
    mpirun: str = ""
    """What its mpirun says of its version; empty where there is none."""
    why_no_mpirun: str = ""
    """Why there is none."""

    @classmethod
    def from_json(cls, text: str) -> Inside:
        """The way back from the JSON of its fields."""
        facts: dict[str, Any] = json.loads(text)
        lists = ("python", "modules", "without_cuda")
        return cls(**{**facts, **{name: tuple(facts[name]) for name in lists}})

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], keeps_entrypoint: bool) -> Inside:
        """What the answer of `look_inside` says."""
        mpirun = facts.get("mpirun", {})
        return cls(
            python=tuple(facts["python"]),
            keeps_entrypoint=keeps_entrypoint,
            search_path=facts["search_path"],
            modules=tuple(facts.get("modules", ())),
            without_cuda=tuple(facts.get("without_cuda", ())),
            mpirun=mpirun.get("version", ""),
            why_no_mpirun=mpirun.get("missing", ""),
        )


def take(client: DockerClient, image: str, described: ImageDescription, toolkit: Path) -> Inside:
    """Look into an image, whose Python compiles the toolkit in the folder `toolkit`.

    Raises InvalidArgument for an image that shows nothing of itself, BackendError for an engine that does not answer.
    """
    with engine.asked_to(f"look into the image {image}"):
        for keeps_entrypoint in (True, False) if described.has_entrypoint else (True,):
            container = _Container(client.api, described, toolkit, keeps_entrypoint)
            try:
                if not described.has_toolkit and container.has_train():
                    return Inside(has_train=True)
                facts = container.ask()
            finally:
                container.remove()
            if facts is not None and (facts["gets_signals"] or not keeps_entrypoint):
                return Inside.from_facts(facts, keeps_entrypoint)
    if container.lacks_python:
        return Inside()
    raise InvalidArgument(
        "image_uri",
        f"image_uri {image!r} could not be looked into: its {PYTHON} says {container.said[-_SHOWN:]!r}; "
        "fix the image, or give it a `train` program of its own",
    )


class _Container:
    """The container of one look; the engine's errors are raised as docker.errors.DockerException."""

    def __init__(self, api: APIClient, described: ImageDescription, toolkit: Path, keeps_entrypoint: bool) -> None:
        from docker.types import LogConfig, Mount

        source = Path(look_inside.__file__).read_text(encoding="utf-8")
        argv = (PYTHON, "-c", source, TOOLKIT_INSIDE, *MODULES)
        self._api = api
        self._path = described.variables.get("PATH", _PATH)
        self.said = ""
        """What it wrote, if that is no answer."""
        self.lacks_python = False
        """Whether the engine found no Python to start."""
        self._identity: str = api.create_container(
            described.identity,
            **started_by(argv, keeps_entrypoint),
            user=f"{os.getuid()}:{os.getgid()}",
            environment=home_of_user(),
            working_dir="/",
            host_config=api.create_host_config(
                mounts=[Mount(TOOLKIT_INSIDE, str(toolkit), type="bind")],
                network_mode="none",
                log_config=LogConfig(type="json-file"),  # that can be read, whatever the engine's own choice is
            ),
        )["Id"]

    def has_train(self) -> bool:
        """Whether there is a `train` program on its PATH; it is not started for that."""
        return any(self._is_program(f"{folder}/train") for folder in self._path.split(":") if folder.startswith("/"))

    def _is_program(self, path: str) -> bool:
        import docker

        try:
            content, status = self._api.get_archive(self._identity, path)
        except docker.errors.NotFound:
            return False
        content.close()
        return not status["mode"] & _IS_FOLDER and bool(status["mode"] & _MAY_BE_RUN)

    def ask(self) -> dict[str, Any] | None:
        """Start it, and return its answer; None where it gives none."""
        import docker

        try:
            self._api.start(self._identity)
            has_ended = self._wait()
        except docker.errors.APIError as error:
            self.said = engine.words(error)
            if not verdicts.cannot_run(self.said):
                raise
            self.lacks_python = "not found" in self.said or "no such file" in self.said
            return None
        if not has_ended:
            self.said = f"nothing for {SECONDS:g} s"
            return None
        answer = self._words(stderr=False).rpartition("\n")[2]
        try:
            facts = json.loads(answer)
        except ValueError:
            facts = None
        if isinstance(facts, dict) and "gets_signals" in facts:
            return facts
        self.said = self._words(stderr=True)
        return None

    def _wait(self) -> bool:
        """Wait until it has ended, but not for ever. Returns whether it has: the engine may only be slow to say so."""
        import docker
        import requests

        try:
            self._api.wait(self._identity, timeout=SECONDS)
        except docker.errors.APIError:  # which is one of those below, and an answer
            raise
        except requests.RequestException:
            return not self._api.inspect_container(self._identity)["State"]["Running"]
        return True

    def _words(self, stderr: bool) -> str:
        said: bytes = self._api.logs(self._identity, stdout=True, stderr=stderr)
        return said.decode("utf-8", "replace").strip()

    def remove(self) -> None:
        """End and remove it."""
        engine.remove_container(self._api, self._identity)
