"""The instance types that a job can ask for: the training types of SageMaker, `local`, `local_gpu`, and others of ours.

The names are the `TrainingInstanceType` of the CreateTrainingJob API reference. Their GPUs are those of the
EC2 type of the same name ("Amazon EC2 instance types", Specifications).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..errors import InvalidArgument
from ..values.naming import suggestion

MAX_HOSTS = 5000
"""As many as the contract's `SM_RESOURCE_CONFIG`, a variable that names them all, has room for."""


SCHEDULED = ("slurm",)
"""What stands for a node that a scheduler grants; a partition of it may follow, as in `slurm.gpu`."""
ON_EXECUTORS = ("spark",)
"""What stands for tasks of a session."""
LOCAL: Mapping[str, int | None] = {"local": 0, "local_gpu": None}
"""Those that stand for this machine -> the GPUs of one; None means those that the machine has."""

_TO_4XL = "xlarge 2xlarge 4xlarge"
_TO_24XL = f"{_TO_4XL} 8xlarge 12xlarge 16xlarge 24xlarge"
_TO_96XL = f"{_TO_24XL} 32xlarge 48xlarge 96xlarge"

# Family -> sizes of those without GPUs.
_PLAIN: dict[str, str] = {
    "c4": "xlarge 2xlarge 4xlarge 8xlarge",
    "c5": f"{_TO_4XL} 9xlarge 18xlarge",
    "c5n": "xlarge 2xlarge 4xlarge 9xlarge 18xlarge",
    "c6i": f"{_TO_24XL} 32xlarge",
    "c7i": f"large {_TO_24XL} 48xlarge",
    "c7i-flex": f"{_TO_4XL} 8xlarge 12xlarge 16xlarge",
    "c8i": _TO_96XL,
    "c8i-flex": f"{_TO_4XL} 8xlarge 12xlarge 16xlarge",
    "m4": f"{_TO_4XL} 10xlarge 16xlarge",
    "m5": f"large {_TO_4XL} 12xlarge 24xlarge",
    "m6i": f"large {_TO_24XL} 32xlarge",
    "m7i": f"large {_TO_24XL} 48xlarge",
    "m7i-flex": f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge",
    "m8i": f"large {_TO_96XL}",
    "m8i-flex": f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge",
    "r5": f"large {_TO_24XL}",
    "r5d": f"large {_TO_24XL}",
    "r6i": f"large {_TO_24XL} 32xlarge",
    "r7i": f"large {_TO_24XL} 48xlarge",
    "r8i": f"large {_TO_96XL}",
    "r8i-flex": f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge",
    "t3": "medium large xlarge 2xlarge",
    "trn1": "2xlarge 32xlarge",
    "trn1n": "32xlarge",
    "trn2": "48xlarge",
}

_OF_G5 = {**dict.fromkeys(f"{_TO_4XL} 8xlarge 16xlarge".split(), 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
# Family -> size -> GPUs.
_WITH_GPUS: dict[str, dict[str, int]] = {
    "p2": {"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "p6-b200": {"48xlarge": 8},
    "p6-b300": {"48xlarge": 8},
    "p6e-gb200": {"36xlarge": 4},
    "g4dn": {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1},
    "g5": _OF_G5,
    "g6": _OF_G5,
    "g6e": _OF_G5,
    "g7": {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
    "g7e": {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
}


def gpus(instance_type: str) -> int | None:
    """The GPUs of one instance of a type; None means those of this machine.

    Raises InvalidArgument, which names the nearest, for an unknown one.

    >>> gpus("ml.g5.12xlarge")
    4
    """
    if is_scheduled(instance_type) or instance_type in ON_EXECUTORS:
        return 0  # what its nodes have, the job has to ask for, and a session its executors
    known = LOCAL if instance_type in LOCAL else names()
    if instance_type not in known:
        hint = suggestion(instance_type, {*known, *SCHEDULED, *ON_EXECUTORS})
        raise InvalidArgument("instance_type", f"instance_type {instance_type!r} is not a known instance type; {hint}")
    return known[instance_type]


def has_gpus(instance_type: str) -> bool:
    """Whether an instance of a type has any. Raises InvalidArgument for an unknown one."""
    return gpus(instance_type) != 0


def is_scheduled(instance_type: str) -> bool:
    """Whether it stands for a scheduler's node."""
    return instance_type.partition(".")[0] in SCHEDULED


@functools.cache
def names() -> Mapping[str, int | None]:
    """All known names, `local` and `local_gpu` first, and the GPUs of each."""
    plain = {f"ml.{family}.{size}": 0 for family, sizes in _PLAIN.items() for size in sizes.split()}
    others = {f"ml.{family}.{size}": count for family, sizes in _WITH_GPUS.items() for size, count in sizes.items()}
    return {**LOCAL, **plain, **others}
