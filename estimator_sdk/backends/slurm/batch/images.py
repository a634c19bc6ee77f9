"""Images on nodes: what runs one there, and what that is told."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import BackendError, InvalidArgument
from ....plan.plan import Plan
from ....values.home import home
from .. import queue
from ..options import SlurmOptions, words

if TYPE_CHECKING:
    from ....spec.job_document import JobDocument

PYTHON = "python3"
"""That of an image, found on its PATH."""
PROGRAMS = {"apptainer": ("apptainer", "singularity"), "charliecloud": ("ch-run",)}
_PATHS = ("/", "./", "../", "~/")
_NOT_FOUND = "neither Pyxis (an srun that knows --container-image) nor Apptainer nor Charliecloud"
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def checked(spec: JobDocument) -> str | None:
    """The image of a job; None without one. Raises InvalidArgument for one that no node can have."""
    from ...docker.images import catalogue

    algorithm = spec.algorithm_specification
    image = algorithm.training_image if algorithm is not None else None
    if image is not None and catalogue.by_name(image) is not None:
        what = f"image_uri is {image}, which Docker has on this machine, and no node can have"
        hint = "name an image in a registry or on the file system that the nodes share, or leave out framework_version"
        raise InvalidArgument("image_uri", f"{what}; {hint}")
    return image


def with_image(plan: Plan, image: str | None, options: SlurmOptions, of_job: dict[str, object]) -> Plan:
    """The plan with the words by which a node runs the image. Raises InvalidArgument for what cannot be.

    `of_job` are the options that the job itself gives, and not its site.
    """
    if image is None:
        named = next((name for name in of_job if name.startswith("container_")), None)
        if named is not None:
            what = f"slurm[{named!r}] is for jobs with an image"
            raise InvalidArgument(f"slurm[{named!r}]", f"{what}; give image_uri, or leave it out")
        return plan
    if plan.program is None and plan.decoded.reserved.command is None and plan.decoded.reserved.steps is None:
        what = "entry_point is missing: on Slurm, a script runs in the image, and not a program of its own"
        raise InvalidArgument("entry_point", f"{what}; give entry_point, command or steps")
    scratch = plan.local_scratch
    if scratch is not None and not scratch.startswith("/"):
        where = "slurm['local_scratch']"
        what = f"{where} is the variable {scratch}, but what an image sees of a node has to be known before"
        raise InvalidArgument(where, f"{what}; name the folder")
    runtime = options.container_runtime or found()
    if runtime is None:
        what = f"image_uri is {image}, but this machine has {_NOT_FOUND}, which run images on nodes"
        hint = "say which one nodes have in slurm['container_runtime'], or leave image_uri out"
        raise InvalidArgument("image_uri", f"{what}; {hint}, so that hosts are processes in an environment of yours")
    by = {"pyxis": _pyxis, "apptainer": _apptainer, "charliecloud": _charliecloud}[runtime]
    return replace(plan, image=image, image_words=tuple(by(plan, image, options)))


def found() -> str | None:
    """What this machine has that runs images on nodes."""
    try:
        if "--container-image" in queue.ask("srun", "--help"):
            return "pyxis"
    except BackendError:
        pass  # it is said elsewhere that Slurm is missing
    return next((name for name, programs in PROGRAMS.items() if any(map(shutil.which, programs))), None)


def _pyxis(plan: Plan, image: str, options: SlurmOptions) -> Iterator[str]:
    """As https://github.com/NVIDIA/pyxis has it: options of srun; of a registry, a # ends the name."""
    registry, slash, rest = image.partition("/")
    if not image.startswith(_PATHS) and slash and "#" not in image and re.search(r"[.:]|^localhost$", registry):
        image = f"{registry}#{rest}"
    yield f"--container-image={_path(image)}"
    yield f"--container-mounts={','.join(_mounts(plan, options, both=True))}"
    yield from words(options.container_options)


def _apptainer(plan: Plan, image: str, options: SlurmOptions) -> Iterator[str]:
    """As the manual of `apptainer exec` has it; singularity is its older name."""
    program = next(filter(shutil.which, PROGRAMS["apptainer"]), "apptainer")
    yield from (program, "exec", f"--bind={','.join(_mounts(plan, options))}")
    has_gpus = options.gpus_per_node is not None or "gpu" in (options.gres or "")
    if has_gpus and not {"nv", "nvccli", "rocm"} & options.container_options.keys():
        yield "--nv"
    yield from words(options.container_options)
    yield _path(image) if image.startswith(_PATHS) or "://" in image else f"docker://{image}"


def _charliecloud(plan: Plan, image: str, options: SlurmOptions) -> Iterator[str]:
    """As the manual of ch-run has it: a folder, a SquashFS file, or the name of an image that `ch-image` knows."""
    yield "ch-run"
    yield from (f"--bind={mount}" for mount in _mounts(plan, options, both=True))
    if "set-env" not in options.container_options:
        yield f"--set-env=PATH={_DEFAULT_PATH}"
    yield from words(options.container_options)
    yield from (_path(image), "--")


def _path(image: str) -> str:
    return str(Path(image).expanduser().absolute()) if image.startswith(_PATHS) else image


def _mounts(plan: Plan, options: SlurmOptions, both: bool = False) -> Iterator[str]:
    """What the image sees of a node, under the paths that it has there; `both` says them twice where they are one.

    Raises InvalidArgument for a path that no such list can hold.
    """
    places = [(str(home()), "ESTIMATOR_HOME")]
    if plan.code is not None and not Path(plan.code).is_relative_to(home()):
        places.append((plan.code, "source_dir"))
    places += [
        (str(Path(channel.source.removeprefix("file://")).absolute()), f"inputs[{channel.name!r}]")
        for channel in plan.channels
        if channel.source.startswith("file://")
    ]
    if plan.local_scratch is not None:
        places.append((plan.local_scratch, "slurm['local_scratch']"))
    for place, argument in places:
        if "," in place or ":" in place:
            what = f"{argument} is {place}, and no path with a comma or a colon can be shown to an image"
            raise InvalidArgument(argument, f"{what}; use another path")
    for mount in dict.fromkeys([*(place for place, _ in places), *options.container_mounts]):
        yield f"{mount}:{mount}" if both and ":" not in mount else mount
