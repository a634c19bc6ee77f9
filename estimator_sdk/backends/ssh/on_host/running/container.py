"""A host that is a container of its machine's Docker: an image, with the toolkit of the machine's cache in it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from estimator_container.contract import names as contract
from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.runtime.children import Children

from .....values.home import cache_folder, home
from ....docker.container import IN_ANY_IMAGE
from .. import words
from ..facts import CODE
from . import docker_program
from .docker_program import Mount
from .place import HostPlace, OnGone

_SEARCH_PATH = "PYTHONPATH"


class KeptContainer:
    """See `KeptHost`. The container's standard input is the lifeline: it ends with the keeper, whatever ends that."""

    def __init__(self, settings: words.RunSettings, image: str, place: HostPlace, children: Children) -> None:
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
        """Of the program `docker`; the container has none of them."""
        self.stdin = place.lifeline
        self._children = children
        self._place = place
        self._name = f"{place.name}.{os.urandom(4).hex()}"
        self._runs = True
        importable = filter(None, (settings.environment.get(_SEARCH_PATH), str(place.software)))
        variables = {
            **settings.environment,
            **place.variables(),
            **IN_ANY_IMAGE,
            contract.LIFELINE_FD: "0",
            _SEARCH_PATH: os.pathsep.join(importable),  # ranks import the toolkit
        }
        here = {words.TOOLKIT: str(place.software / words.TOOLKIT)}
        argv = [here.get(word, word) for word in settings.argv]
        self.argv = docker_program.run(settings.image_words, image, argv, self._name, _mounts(place), variables)

    def ended(self, code: int, then: OnGone) -> None:
        if code >= 0:
            self._is_gone(code, then)
        else:  # only the program `docker` has ended, which was killed
            gone = docker_program.remove(self._name)
            self._children.start(gone, self.environment, lambda _: self._is_gone(code, then))

    def _is_gone(self, code: int, then: OnGone) -> None:
        self._runs = False
        then(128 - code if code > 128 and code != EXIT_STOPPED else code, self._why_not_begun(code))

    def _why_not_begun(self, code: int) -> str | None:
        """A toolkit that has begun takes its secret away."""
        if code <= 0 or not Path(Layout(self._place.base).world_secret).exists():
            return None
        with contextlib.suppress(OSError):
            return docker_program.said(Path(self._place.log).read_text(encoding="utf-8", errors="replace"))
        return f"docker run ended with {code}"

    def end(self) -> None:
        if self._runs:
            docker_program.ask(docker_program.remove(self._name))


def _mounts(place: HostPlace) -> list[Mount]:
    """What the container sees of its machine: the user's jobs, and what is brought for this one."""
    fixed = [place.software.resolve(), cache_folder() / CODE]
    return [
        Mount(str(home())),
        Mount(str(place.common)),
        *(Mount(str(path), is_fixed=True) for path in fixed if path.exists()),
    ]
