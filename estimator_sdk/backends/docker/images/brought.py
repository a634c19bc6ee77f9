"""The toolkit for images that are not ours: brought to their containers, and what is known of each image besides.

Both are in the cache, by the toolkit's content and the image's id, so that only the first job of an image looks into
it. Each image has a copy of its own, because its Python compiles it, and nobody else is to run what that has written.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import estimator_container

from ....plan.plan import Plan
from ....values.home import CACHE_VARIABLE, appearing, cache_folder, secured, writing
from ...packages import copy_files, digest_of
from ..container import IN_ANY_IMAGE, TOOLKIT_INSIDE
from . import look, look_inside
from .look import PYTHON, Inside

if TYPE_CHECKING:
    from docker import DockerClient

    from ..engine import ImageDescription

UNUSED_SECONDS = 60 * 86400
_COPY = "toolkit"
_FACTS = "image.json"  # beside the copy, because the image can write below that
_SEARCH_PATH = "PYTHONPATH"


@dataclass(frozen=True)
class Brought:
    """The toolkit as an image's containers get it."""

    inside: Inside
    """What else there is in the image."""
    folder: Path
    """The folder of this machine to import it from."""

    def to(self, plan: Plan) -> Plan:
        """The plan, whose hosts run this toolkit."""
        added = {_SEARCH_PATH: _joined(self.inside.search_path), **IN_ANY_IMAGE}
        argv = (PYTHON, "-I", "-S", f"{TOOLKIT_INSIDE}/{_toolkit().name}", "train")
        hosts = (replace(host, argv=argv, environment={**host.environment, **added}) for host in plan.hosts)
        environment = dict(plan.environment)
        if _SEARCH_PATH in environment:
            environment[_SEARCH_PATH] = _joined(environment[_SEARCH_PATH])
        return replace(
            plan,
            hosts=tuple(hosts),
            environment=environment,
            toolkit=str(self.folder),
            keeps_entrypoint=self.inside.keeps_entrypoint,
        )


def for_image(client: DockerClient, image: str, described: ImageDescription) -> Brought:
    """The toolkit for an image of the engine, which is looked into unless that was done before.

    Raises InvalidArgument for an image that shows nothing of itself, BackendError for an engine that does not answer,
    EstimatorError for a cache that cannot be written.
    """
    with writing("a copy of the toolkit", CACHE_VARIABLE):
        place = secured(secured(cache_folder(), CACHE_VARIABLE) / "toolkits", CACHE_VARIABLE)
        folder = place / f"{_digest()}-{described.identity.rpartition(':')[2][:16]}"
        if not folder.exists():
            _make(client, image, described, folder)
            remove_unused(place)
        facts = folder / _FACTS
        os.utime(facts)
        inside = Inside.from_json(facts.read_text(encoding="utf-8"))
    return Brought(inside, folder / _COPY)


def remove_unused(place: Path) -> None:
    """Remove the copies that no job has used for longer than any may run."""
    for facts in place.glob(f"*/{_FACTS}"):
        if time.time() - facts.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(facts.parent, ignore_errors=True)


def _joined(search_path: str) -> str:
    return os.pathsep.join(filter(None, (search_path, TOOLKIT_INSIDE)))


def _make(client: DockerClient, image: str, described: ImageDescription, folder: Path) -> None:
    with appearing(folder) as unfinished:
        copy_files(_files(), unfinished / _COPY)
        inside = look.take(client, image, described, unfinished / _COPY)
        if inside.has_train:
            shutil.rmtree(unfinished / _COPY)
        (unfinished / _FACTS).write_text(json.dumps(asdict(inside)), encoding="utf-8")


def _toolkit() -> Path:
    return Path(estimator_container.__file__).parent


def _files() -> dict[str, Path]:
    return {str(file.relative_to(_toolkit().parent)): file for file in _toolkit().rglob("*.py")}


@cache
def _digest() -> str:
    """Of the toolkit, and of what looks into images."""
    return digest_of({**_files(), "look_inside.py": Path(look_inside.__file__), "look.py": Path(look.__file__)})
