"""Local Docker mode: every host is a container on a network of the job's own.

The engine is reached through the Docker SDK for Python, which is imported when a job is planned or run, not before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, cast

from estimator_container.contract import names as contract
from estimator_container.contract.reserved import Reserved
from estimator_container.runtime import machine
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ...errors import InvalidArgument
from ...plan.plan import HostPlan, Plan
from ...values.home import JobFolder
from ...values.standard_streams import Tolerant
from ..port import Finding, findings
from ..supervised.backend import Supervised
from ..supervised.supervisor.hosts import Hosts, OnHostEnded
from . import CAPABILITIES, engine
from .containers import CODE_IN_CONTAINER, DockerHosts

if TYPE_CHECKING:
    from docker import DockerClient

    from ...spec.job_document import JobDocument
    from ..supervised.job import LocalJob
    from .images.brought import Brought


class DockerBackend(Supervised):
    """Runs the hosts of a job as containers of this machine's Docker engine."""

    name = "docker"
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job for the engine. Raises InvalidArgument for what it cannot do, BackendError without one."""
        # Not for the supervisor, which loads this module to start what was planned.
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from ...spec import instances
        from .images import catalogue

        spec, image = _with_image(spec)
        client = engine.connect()
        ours = catalogue.by_name(image)  # it may not be built yet
        brought = _brought(client, image, spec) if ours is None else None
        has_toolkit = ours is not None or brought is not None
        plan = local_plan.base(spec, self.name, _host if has_toolkit else _other_host)
        if ours is not None and ours.is_for_cpus and instances.has_gpus(plan.instance_type):
            raise InvalidArgument(
                "instance_type",
                f"instance_type {plan.instance_type!r} asks for GPUs, but {image} is for CPUs, which leaves them idle; "
                f"use {catalogue.newest(ours.framework, for_gpus=True).name}, which has CUDA, or 'local'",
            )
        plan = replace(plan, image=image, sees_only_mounts=True)
        engine.require_room(client, plan.cpus, plan.memory)
        if plan.code is not None:
            moved = Reserved(submit_directory=CODE_IN_CONTAINER).encode()
            plan = replace(plan, hyperparameters={**plan.hyperparameters, **moved})
        if has_toolkit:
            distributions.refuse_others(plan)
        else:
            _check_other_toolkit(image, plan.decoded.reserved)
        plan = distributions.distributed(plan, local_plan.gpus(plan.instance_type, machine.gpus()))
        plan = inheritance.for_containers(plan, os.environ)
        if brought is not None:
            plan = brought.to(plan)
        kernel_limits.check_own()
        plan = kernel_limits.check_containers(local_plan.with_command(plan, "python", None))
        if brought is not None:
            from .images import needs

            needs.check(plan, brought.inside)
        return plan

    def start(self, plan: Plan) -> LocalJob:
        """Start the plan's containers under a supervisor, and return at once.

        An image of ours that the engine does not have, or has with an older toolkit, is built first, which is shown on
        the standard error. Raises BackendError where that fails.
        """
        from ...code import store as code_store
        from ..supervised.client import start
        from .images import build

        code_store.upload(plan.code, plan.code_uri)
        build.ensure(engine.connect(), plan.image or "", cast("TextIO", Tolerant(sys.stderr)))
        return start(plan)

    def check(self) -> Iterable[Finding]:
        """Look for a Docker engine and our images."""
        from .check import CHECKS

        return findings(self.name, CHECKS)

    def hosts(
        self, plan: Plan, folder: JobFolder, attempt: int, loop: Loop, children: Children, on_ended: OnHostEnded
    ) -> Hosts:
        """The containers of one attempt, for its supervisor."""
        return DockerHosts(plan, folder, attempt, loop, on_ended)


def _with_image(spec: JobDocument) -> tuple[JobDocument, str]:
    """The job with an image, and that image; where none is named, the one of ours that has what the job needs."""
    from ...spec import instances
    from ...spec.job_document import AlgorithmSpecification
    from .images import catalogue

    algorithm = spec.algorithm_specification or AlgorithmSpecification(training_input_mode="File")
    if algorithm.training_image is not None:
        return spec, algorithm.training_image
    image = catalogue.default(spec.decoded.reserved, instances.has_gpus(spec.instance_type)).name
    return replace(spec, algorithm_specification=replace(algorithm, training_image=image)), image


def _brought(client: DockerClient, image: str, spec: JobDocument) -> Brought | None:
    """The toolkit for an image that is not of the catalogue; None for one that is run as it is.

    Such is an image with a `train` program of its own, and any in a job that gives it nothing to run. Raises
    InvalidArgument for an image that the engine does not have, or whose Python cannot run the toolkit.
    """
    described = engine.require_image(client, image)
    reserved = spec.decoded.reserved
    program = reserved.program_in(spec.environment or {})
    has_work = program is not None or bool(reserved.command or reserved.steps or described.has_toolkit)
    if not has_work and described.has_entrypoint:
        return None
    from .images import brought, needs

    found = brought.for_image(client, image, described)
    if found.inside.has_train:
        return None
    if not has_work:
        what = f"image_uri {image!r} has neither a `train` program on its PATH nor an ENTRYPOINT, so nothing would run"
        raise InvalidArgument("image_uri", f"{what}; give entry_point='train.py', or add a program to the image")
    needs.check_python(image, found.inside)
    return found


def _host(name: str, index: int, hosts: int) -> HostPlan:
    return HostPlan(
        name=name,
        address="",
        base_dir=contract.DEFAULT_BASE_DIR,
        argv=("train",),
        environment={contract.HOSTS_PER_MACHINE: str(hosts), contract.CONSOLE: "off"},
    )


def _check_other_toolkit(image: str, reserved: Reserved) -> None:
    """Raises InvalidArgument for what only our toolkit runs; another program would leave it out and say nothing."""
    for argument in ("command", "arguments", "steps"):
        if getattr(reserved, argument) is not None:
            what = f"{argument} needs our toolkit, but {image} has a `train` program of its own, which is run instead"
            hint = "give entry_point, and hyperparameters in the order of their names, or choose another image"
            raise InvalidArgument(argument, f"{what}; {hint}")


def _other_host(name: str, index: int, hosts: int) -> HostPlan:
    """A host whose image has a program that would hand our variables to the script."""
    return replace(_host(name, index, hosts), environment={})
