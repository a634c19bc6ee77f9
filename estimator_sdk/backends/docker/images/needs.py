"""What a job needs of an image that is not ours, and the sentence about what that lacks."""

from __future__ import annotations

import re

from estimator_container.host.preparation import requirements

from ....errors import InvalidArgument
from ....plan import code_imports
from ....plan.plan import Plan
from ....spec import instances
from .look import PYTHON, Inside
from .look_inside import OLDEST

_OPEN_MPI = re.compile(r"\(Open MPI\) 4\.")
_OLDEST = ".".join(map(str, OLDEST))


def check_python(image: str, inside: Inside) -> None:
    """Raises InvalidArgument for an image whose Python cannot run the toolkit."""
    if not inside.python:
        what = f"has no {PYTHON} on its PATH, nor a `train` program"
        raise _refused(image, what, f"add Python {_OLDEST} or newer to the image, or choose one that has it")
    if inside.python[:2] < OLDEST:
        what = f"has Python {'.'.join(map(str, inside.python))}, but the toolkit needs {_OLDEST} or newer"
        raise _refused(image, what, f"put a newer {PYTHON} first on the image's PATH, or choose another image")


def check(plan: Plan, inside: Inside) -> None:
    """Raises InvalidArgument for an image that lacks what the job needs: Open MPI, pip, what the script imports."""
    image = plan.image or ""
    if plan.distribution == "mpi":
        _check_mpi(image, inside)
    code = code_imports.read(plan)
    if code.installed_from:  # it may bring what the script imports
        if "pip" not in inside.modules:
            what = f"has no pip to install what {code.installed_from} names"
            raise _refused(image, what, "add pip to the image, or add the packages themselves and leave the file out")
        return
    for module in code.modules:
        if module not in inside.modules:
            what = f"has no {module}, which {plan.program} imports"
            raise _refused(image, what, f"add it to the image, or name it in a {requirements.FILE} beside the script")
        if instances.gpus(plan.instance_type) is None and module in inside.without_cuda:
            what = f"has a build of {module} without CUDA, which would leave the GPUs of {plan.instance_type!r} idle"
            raise _refused(image, what, "choose an image with CUDA, or use 'local'")


def _check_mpi(image: str, inside: Inside) -> None:
    if not inside.mpirun:
        raise InvalidArgument("image_uri", f"image_uri {image!r} cannot run an MPI world: {inside.why_no_mpirun}")
    if not _OPEN_MPI.search(inside.mpirun):
        what = f"has an mpirun that says {inside.mpirun!r}, but MPI worlds are started by that of Open MPI 4.1"
        raise _refused(image, what, "put Open MPI 4.1 first on the image's PATH, or choose another image")


def _refused(image: str, what: str, what_to_do: str) -> InvalidArgument:
    return InvalidArgument("image_uri", f"image_uri {image!r} {what}; {what_to_do}")
