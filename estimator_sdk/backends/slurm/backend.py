"""Jobs on a Slurm cluster, submitted from a login node whose file system the nodes share.

A host is a step on a node of its own: the toolkit, in the Python environment that calls `fit()`. The supervisor is the
batch script, on the first node, and all it keeps is in the job's folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract import names as contract

from ...errors import BackendError, InvalidArgument, JobNotFound
from ...plan.plan import HostPlan, Plan
from ...spec import instances
from ...values.home import reading, write_private
from ..port import Finding, findings
from ..supervised.job_folder import registry
from ..supervised.job_folder.record import write_record
from . import CAPABILITIES, queue, site
from .batch import images, local_scratch, nodes_python, packages, script, store_client, submission
from .files import SlurmFolder, jobs_on_slurm
from .job import SlurmJob
from .options import SlurmOptions, is_word

if TYPE_CHECKING:
    from ...spec.job_document import JobDocument

_VARIABLES = (
    "SLURM_CONF",
    "SLURM_CLUSTERS",
    "MODULEPATH",
    "MODULESHOME",
    "LMOD_*",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""What hosts have of the login node besides what any process needs."""


class SlurmBackend:
    """Submits jobs to Slurm."""

    name = "slurm"
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job for the cluster. Raises InvalidArgument for what it cannot do."""
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from ...plan.plan import DEFAULT_CHECKPOINTS

        reserved = spec.decoded.reserved
        options, defaults = site.chosen(reserved.slurm or {})
        options = self._after_another(options)
        image = images.checked(spec)
        python = nodes_python.checked(options)
        host = partial(_host, python if image is None else images.PYTHON, options, image is not None)
        plan = local_plan.base(spec, self.name, host, jobs_on_slurm())
        per_node = min(options.hosts_per_node or 1, len(plan.hosts))
        plan = replace(plan, spare_hosts=reserved.spare_hosts or 0, hosts_per_node=per_node)
        if options.gpus is not None:
            options = replace(options, gpus_per_node=options.gpus * per_node)
        _refuse_pipes(plan)
        of_job = dict(reserved.slurm or {})
        plan = local_scratch.with_scratch(plan, options, "local_scratch" in of_job)
        plan = images.with_image(plan, image, options, of_job)
        if plan.checkpoint_path != DEFAULT_CHECKPOINTS:
            where = "checkpoint_local_path"
            what = f"{where} is {plan.checkpoint_path}, but a host on Slurm has its folders in that of its job"
            raise InvalidArgument(where, f"{what}: leave it out, and let the script write to SM_CHECKPOINT_DIR")
        distributions.refuse_others(plan)
        gpus = options.gpus_per_node or instances.gpus(plan.instance_type) or 0
        _refuse_uneven(gpus, per_node)
        plan = distributions.distributed(plan, gpus // per_node)
        folder = SlurmFolder.for_job(plan.job_name)
        overlay = folder.overlay(1)
        plan = _with_command(plan, python, overlay)
        plan = inheritance.for_nodes(plan, _VARIABLES)
        base = str(folder.hosts / plan.hosts[-1].base_dir)
        inherited = plan.inherited_from(os.environ)
        plan = kernel_limits.check_processes(plan, base, inherited, str(overlay / "bin" / "python"))
        return script.with_script(plan, options, _partition(plan.instance_type, options), defaults)

    def _after_another(self, options: SlurmOptions) -> SlurmOptions:
        """The same, with the job that has to be done before among the dependencies. Raises InvalidArgument."""
        if options.after is None:
            return options
        where = "slurm['after']"
        try:
            job = self.attach(options.after)
        except JobNotFound:
            what = f"{where} is {options.after!r}, but there is no such job in {jobs_on_slurm()}"
            raise InvalidArgument(where, f"{what}; see `estimator ps`") from None
        state, number = job.record(), job.folder.read_number()
        if state.status == "Completed":
            return options
        if state.is_final or number is None:
            what = f"{where} is {options.after!r}, which is {state.status}, so this job would never start"
            raise InvalidArgument(where, f"{what}; run that job again, or leave it out")
        if not job.is_here:
            its = job.folder.read_cluster()
            what = f"{where} is {options.after!r}, a job of cluster {its}, and no job of another one can wait for it"
            raise InvalidArgument(where, f"{what}; submit this one there, or leave it out")
        return replace(options, dependency=",".join(filter(None, (options.dependency, f"afterok:{number}"))))

    def start(self, plan: Plan) -> SlurmJob:
        """Submit the plan's script, and return at once. Raises BackendError with what Slurm says against it."""
        from ...code import store as code_store
        from ..supervised.client import first_record, new_folder  # who lists jobs need not load it

        code_store.upload(plan.code, plan.code_uri)
        folder = SlurmFolder.for_job(plan.job_name)
        try:
            self._bring_packages(plan)
            with new_folder(plan, folder):
                write_record(first_record(plan), folder)
                _keep(plan, folder)
                exported = (plan.decoded.reserved.slurm or {}).get("export_script")
                if exported is None:
                    self._submit(plan, folder)
                else:
                    submission.export(plan, folder, Path(str(exported)).expanduser().absolute())
        except OSError as error:
            what = f"the job {plan.job_name} could not be submitted: {error}"
            hint = "set ESTIMATOR_HOME to a folder on a file system that the nodes share, with free space"
            raise BackendError(f"{what}; {hint}") from None
        return SlurmJob(folder)

    def _bring_packages(self, plan: Plan) -> None:
        if not packages.travel_with(plan):
            return
        packages.make_copy()
        options, _ = site.chosen(plan.decoded.reserved.slurm or {})
        client = store_client.needed(plan, options)
        if client is not None:
            store_client.make(client)

    def _submit(self, plan: Plan, folder: SlurmFolder) -> None:
        number, cluster = submission.submit(plan)
        try:
            folder.write_number(number, cluster)
        except BaseException:
            queue.cancel(number)
            raise

    def attach(self, name: str) -> SlurmJob:
        """The job of that name. Raises JobNotFound."""
        with suppress(InvalidArgument):
            job = SlurmJob(SlurmFolder.for_job(name))
            if job.path.exists():
                with reading():
                    job.record()
                return job
        raise JobNotFound(f"none in {jobs_on_slurm()}" if jobs_on_slurm().exists() else "")

    def list(self, limit: int | None = None) -> Sequence[SlurmJob]:
        """The jobs that were submitted from this home, the newest first, at most `limit`."""
        folder = jobs_on_slurm()
        if not folder.exists():
            return []
        with reading():
            jobs = [SlurmJob(SlurmFolder(folder / name)) for name in registry.names(folder)]
            found = [(job.created(), job) for job in jobs]
        newest = sorted((each for each in found if each[0] is not None), key=lambda each: -(each[0] or 0.0))
        return [job for _, job in newest[:limit]]

    def check(self) -> Iterable[Finding]:
        """Look for Slurm, and for what nodes need of this machine."""
        from .check import CHECKS

        return findings(self.name, CHECKS)

    def probe(self) -> Iterable[Finding]:
        """Submit a job of two nodes that looks for what jobs need there, and wait for what it finds."""
        from .probe.on_login_node import probe

        return probe(self.name)


def _host(python: str, options: SlurmOptions, in_image: bool, name: str, index: int, hosts: int) -> HostPlan:
    """A host with the toolkit that is here, or with a copy where another Python runs it."""
    from ..process.backend import TOOLKIT

    toolkit = TOOLKIT if options.python is None and not in_image else str(packages.copy() / Path(TOOLKIT).name)
    network = {contract.INTERFACE: options.interface, contract.TRANSPORT: options.transport}
    return HostPlan(
        name=name,
        address="",
        base_dir=name,
        argv=(python, "-I", "-S", toolkit, "train"),
        environment={contract.CONSOLE: "off", **{name: told for name, told in network.items() if told is not None}},
    )


def _with_command(plan: Plan, python: str, overlay: Path) -> Plan:
    """With what its ranks run; nobody can look for a program in an image from here."""
    from ...plan import local as local_plan

    if plan.image is None:
        return local_plan.with_command(plan, python, overlay)
    is_known = plan.decoded.reserved.command is None
    return local_plan.with_command(plan, images.PYTHON, overlay if is_known else None)


def _refuse_uneven(gpus: int, hosts_per_node: int) -> None:
    if gpus % hosts_per_node:
        where = "slurm['hosts_per_node']"
        what = f"{where} is {hosts_per_node}, but the {gpus} GPUs of a node cannot be divided evenly by that"
        raise InvalidArgument(where, f"{what}; choose a divisor of {gpus}")


def _refuse_pipes(plan: Plan) -> None:
    for channel in plan.channels:
        if channel.is_piped:
            argument = f"inputs[{channel.name!r}]"
            what = f"{argument} is piped, but a pipe does not reach from the first node to the others"
            raise InvalidArgument(argument, f"{what}; use input_mode 'File'")


def _partition(instance_type: str, options: SlurmOptions) -> str | None:
    """What `slurm.NAME` names. Raises InvalidArgument where an option says otherwise."""
    _, found, partition = instance_type.partition(".")
    if not instances.is_scheduled(instance_type) or not found:
        return None
    if not is_word(partition):
        what = f"instance_type is {instance_type!r}, which names no partition that a cluster can have"
        raise InvalidArgument("instance_type", f"{what}; write 'slurm.NAME', or 'slurm' for the default partition")
    if options.partition == partition:
        return None
    if options.partition is not None:
        what = f"slurm['partition'] is {options.partition!r}, but instance_type {instance_type!r} names another one"
        raise InvalidArgument("slurm['partition']", f"{what}; give one of them")
    return partition


def _keep(plan: Plan, folder: SlurmFolder) -> None:
    of_stores = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    write_private(folder.given, json.dumps({"plan": plan.to_json(), "variables": of_stores}))
    write_private(folder.supervisor_log, "")  # Slurm opens it as it is, for this user alone
