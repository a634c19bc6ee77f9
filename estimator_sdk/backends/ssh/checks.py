"""What a job on a pool may ask for, and what this machine needs to reach one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from estimator_container.contract.reserved import Reserved

from ...errors import EstimatorError, InvalidArgument
from ...plan.plan import DEFAULT_CHECKPOINTS, Plan
from ...spec import instances
from ...values.home import secured
from ..port import Check, Missing
from . import pool
from .files import jobs_on_pools
from .pool import PoolHost
from .session.images import run_words

if TYPE_CHECKING:
    from ...spec.job_document import JobDocument


def machines_of(spec: JobDocument) -> tuple[PoolHost, ...]:
    """The machines of a job, and its spares. Raises InvalidArgument where it names none, or too few."""
    count = (spec.resource_config and spec.resource_config.instance_count) or 1
    return _machines(spec.decoded.reserved, count)


def machines_of_plan(plan: Plan) -> tuple[PoolHost, ...]:
    """The same, once it is planned."""
    return _machines(plan.decoded.reserved, len(plan.hosts))


def _machines(reserved: Reserved, count: int) -> tuple[PoolHost, ...]:
    given = reserved.pool
    if given is None:
        what = "hosts is missing, so there is no machine to run on"
        raise InvalidArgument("hosts", f"{what}; give hosts=['a', 'user@b:2222'] or hostfile='hosts'")
    machines = pool.from_document(given)
    spares = reserved.spare_hosts or 0
    if count + spares > len(machines):
        asked = f"instance_count={count} and spare_hosts={spares} need" if spares else f"instance_count={count} needs"
        what = f"{asked} {count + spares} machines, but hosts names {len(machines)}"
        raise InvalidArgument("hosts", f"{what}; name more, or ask for fewer")
    return machines[: count + spares]


def check_elsewhere(plan: Plan, hosts: str, way: str) -> None:
    """Raises InvalidArgument for what hosts on other machines cannot do.

    Messages have the words for these hosts, and for the way that pipes do not reach.
    """
    if plan.checkpoint_path != DEFAULT_CHECKPOINTS:
        what = f"checkpoint_local_path is {plan.checkpoint_path}, but {hosts} have their folders in one of the job's"
        hint = "leave it out, and let the script write to SM_CHECKPOINT_DIR"
        raise InvalidArgument("checkpoint_local_path", f"{what}: {hint}")
    for channel in plan.channels:
        if channel.is_piped:
            argument = f"inputs[{channel.name!r}]"
            what = f"{argument} is piped, but a pipe does not reach from {way}"
            raise InvalidArgument(argument, f"{what}; use input_mode 'File'")


def with_image(spec: JobDocument, plan: Plan) -> Plan:
    """The plan with how a machine's Docker runs the job's image, if it has one. Raises InvalidArgument."""
    algorithm = spec.algorithm_specification
    image = algorithm.training_image if algorithm is not None else None
    if image is None:
        return plan
    reserved = plan.decoded.reserved
    if plan.program is None and reserved.command is None and reserved.steps is None:
        what = "entry_point is missing: on a pool, a script runs in the image, and not a program of its own"
        raise InvalidArgument("entry_point", f"{what}; give entry_point, command or steps")
    return replace(plan, image=image, image_words=run_words(with_gpus=instances.gpus(plan.instance_type) != 0))


def check(plan: Plan, machines: Sequence[PoolHost]) -> None:
    """Raises InvalidArgument for what hosts of a pool cannot do."""
    if instances.is_scheduled(plan.instance_type):
        what = f"instance_type is {plan.instance_type}, which asks a scheduler for nodes, but hosts names machines"
        raise InvalidArgument("instance_type", f"{what}; leave out one of the two")
    check_elsewhere(plan, "hosts of a pool", "one machine to another")
    for argument, uri in (("checkpoint_s3_uri", plan.checkpoint_uri), ("code_location", plan.code_uri)):
        if uri is not None and uri.startswith("file://"):
            what = f"{argument} is {uri}, a folder of this machine, which the machines of a pool do not see"
            raise InvalidArgument(argument, f"{what}; use an s3:// URI")
    for channel in plan.channels:
        argument = f"inputs[{channel.name!r}]"
        if channel.source.startswith("file://") and not channel.is_in_place:
            what = f"{argument} is a share or a list of files of this machine, which are brought to a pool as a whole"
            raise InvalidArgument(argument, f"{what}; leave that out, or use an s3:// URI")


def with_slots(plan: Plan, machines: Sequence[PoolHost]) -> Plan:
    """The plan with as many processes on each host as its machines have slots, where the job does not say."""
    slots = [machine.slots for machine in machines if machine.slots is not None]
    reserved = plan.decoded.reserved
    if not any(reserved.distributions.values()) or reserved.processes_per_host is not None or not slots:
        return plan
    told = Reserved(processes_per_host=min(slots)).encode()
    return replace(plan, hyperparameters={**plan.hyperparameters, **told})


def check_slots(plan: Plan, machines: Sequence[PoolHost]) -> None:
    """Raises InvalidArgument for a machine that takes fewer ranks than a host has."""
    for machine in machines:
        if machine.slots is not None and machine.slots < plan.processes_per_host:
            what = f"a host has {plan.processes_per_host} processes, but {machine} has {machine.slots} slots"
            raise InvalidArgument("hosts", f"{what}; lower processes_per_host, or give that machine more slots")


def _ssh() -> str:
    if shutil.which("ssh") is None:
        raise Missing("there is no program ssh on PATH", "apt-get install openssh-client")
    done = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False)
    return done.stderr.strip() or done.stdout.strip()


def _folder() -> str:
    try:
        return str(secured(jobs_on_pools()))
    except (OSError, EstimatorError) as error:
        raise Missing(str(error), "export ESTIMATOR_HOME=/a/folder/of/yours") from None


CHECKS: tuple[Check, ...] = (("OpenSSH", _ssh), ("job folder", _folder))
