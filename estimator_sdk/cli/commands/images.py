"""`estimator images ls|build`: the training images."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TextIO

from ...backends.docker import engine
from ...backends.docker.images import catalogue
from ...errors import InvalidArgument
from .. import answer
from ..parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument("action", choices=["ls", "build"])
    add_build_options(parser, "?")


def run(arguments: Namespace) -> int:
    if arguments.action == "build":
        if arguments.framework is None:
            frameworks = ", ".join(["mpi", *catalogue.VERSIONS])
            raise InvalidArgument("framework", f"build needs to know what to build: one of {frameworks}")
        name = build(arguments, sys.stderr)
        answer.show(arguments, {"image": name}, [name])
        return 0
    for option in ("framework", "framework_version", "gpu", "base", "debian_base", "tag"):
        if getattr(arguments, option):
            raise InvalidArgument(option, f"{option} is for build, and ls lists all images; leave it out")
    return _list(arguments)


def add_build_options(parser: ArgumentParser, nargs: str | None = None) -> None:
    """The options that `build` reads."""
    parser.add_argument("framework", nargs=nargs, choices=["mpi", *catalogue.VERSIONS])
    parser.add_argument("--framework-version", help="such as 2.21 (default: the newest)")
    parser.add_argument("--gpu", action="store_true", help="with CUDA, for jobs on GPUs (the newest version only)")
    parser.add_argument("--base", help=f"the image to build on (default: {catalogue.PULLED})")
    parser.add_argument("--debian-base", action="store_true", help="make the base from Debian's packages")
    parser.add_argument("--tag", help="the image's name (default: the name that an estimator looks for)")


def build(settings: Namespace, out: TextIO) -> str:
    """Build the image that the options name, and return its name; what is done is shown on `out`.

    Raises InvalidArgument for a version that there is not, BackendError where it fails.
    """
    from ...backends.docker.images import base
    from ...backends.docker.images import build as builder

    framework, version, gpu = settings.framework, settings.framework_version, settings.gpu
    if gpu and framework == "mpi":
        what = "the image mpi contains no framework, so there is no other one with CUDA"
        raise InvalidArgument("gpu", f"{what}; leave --gpu out, or build {' or '.join(catalogue.VERSIONS)}")
    chosen = catalogue.find(framework, version, for_gpus=gpu) if version else catalogue.newest(framework, gpu)
    client = engine.connect()
    under = base.make(client, out) if settings.debian_base else settings.base
    name: str = settings.tag or chosen.name
    builder.build(client, chosen, name, under, out)
    return name


def _list(arguments: Namespace) -> int:
    from ...backends.docker.images import context

    client = engine.connect()
    document = []
    for image in catalogue.everything():
        there = engine.toolkit_of(client, image.name)
        is_of_today = there == context.digest(image, context.files(image))
        state = "not built" if there is None else "built" if is_of_today else "has an older toolkit"
        document.append({"image": image.name, "state": state})
    rows = [["IMAGE", "STATE"], *([each["image"], each["state"]] for each in document)]
    answer.show(arguments, document, answer.table(rows))
    return 0
