"""What the code of a job imports and installs, as far as one can tell without running it."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from typing import NamedTuple

from estimator_container.contract.entry_point import PACKAGE_FILES
from estimator_container.host import gpus
from estimator_container.host.preparation import requirements

from ..errors import InvalidArgument
from .plan import Plan

_IMPORTED = re.compile(rb"^(?:import|from)[ \t]+(horovod|mpi4py|tensorflow|torch)\b", re.MULTILINE)
"""What a script imports in any case: nothing that is indented is meant."""


class CodeImports(NamedTuple):
    """Of the code of one job."""

    modules: Sequence[str]
    """Those of the frameworks that its entry point imports, sorted."""
    installed_from: str = ""
    """The file that names what is installed before the script runs, which may bring any of these; empty for none."""


def read(plan: Plan) -> CodeImports:
    """Those of a plan's code."""
    if plan.code is None:
        return CodeImports(())
    program = plan.program or ""
    with tarfile.open(plan.code) as bundle:
        names = bundle.getnames()
        content = bundle.extractfile(program) if program.endswith(".py") and program in names else None
        imported = set(_IMPORTED.findall(content.read())) if content is not None else set()
    installed = next((name for name in (requirements.FILE, *PACKAGE_FILES) if name in names), "")
    return CodeImports(sorted(each.decode() for each in imported), installed)


def check_cuda(plan: Plan) -> None:
    """Raises InvalidArgument where the entry point imports a build of this environment that would leave GPUs idle."""
    found = read(plan)
    for module in () if found.installed_from else found.modules:
        refuse_build_without_cuda(plan.instance_type, module)


def refuse_build_without_cuda(instance_type: str, module: str) -> None:
    """Raises InvalidArgument for such a build in this Python environment."""
    told_by = gpus.build_without_cuda(module)
    if told_by:
        raise InvalidArgument(
            "instance_type",
            f"instance_type {instance_type!r} asks for GPUs, but hosts that are processes use this Python "
            f"environment's {module}, a build without CUDA ({told_by}), which would leave them idle; install one with "
            "CUDA here, or use 'local'",
        )
