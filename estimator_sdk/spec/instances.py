"""The instance types that a job can ask for: the training types of SageMaker, `local` and `local_gpu`.

The names are the `TrainingInstanceType` of the CreateTrainingJob API reference. Their figures are those of
the EC2 type of the same name ("Amazon EC2 instance types", Specifications).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidArgument
from ..values.naming import suggestion

MAX_HOSTS = 5000
"""As many as the contract's `SM_RESOURCE_CONFIG`, a variable that names them all, has room for."""


@dataclass(frozen=True)
class InstanceType:
    """What one instance of a type offers."""

    name: str
    """As in `instance_type=`, such as `ml.g5.12xlarge` or `local`."""
    cpus: int | None
    """vCPUs; None means those of this machine."""
    memory_gib: float | None
    """GiB of memory; None means that of this machine."""
    gpus: int | None
    """GPUs; None means those of this machine."""
    neurons: int
    """Physical NeuronCores of AWS Trainium."""

    @property
    def is_local(self) -> bool:
        """Whether it stands for this machine."""
        return self.name in LOCAL


LOCAL = {
    "local": InstanceType("local", None, None, 0, 0),
    "local_gpu": InstanceType("local_gpu", None, None, None, 0),
}

_TO_4XL = "xlarge 2xlarge 4xlarge"
_TO_24XL = f"{_TO_4XL} 8xlarge 12xlarge 16xlarge 24xlarge"
_TO_96XL = f"{_TO_24XL} 32xlarge 48xlarge 96xlarge"

# Families without accelerators whose memory is so many GiB per vCPU: family -> (GiB per vCPU, sizes).
_PLAIN: dict[str, tuple[int, str]] = {
    "c5": (2, f"{_TO_4XL} 9xlarge 18xlarge"),
    "c6i": (2, f"{_TO_24XL} 32xlarge"),
    "c7i": (2, f"large {_TO_24XL} 48xlarge"),
    "c7i-flex": (2, f"{_TO_4XL} 8xlarge 12xlarge 16xlarge"),
    "c8i": (2, _TO_96XL),
    "c8i-flex": (2, f"{_TO_4XL} 8xlarge 12xlarge 16xlarge"),
    "m4": (4, f"{_TO_4XL} 10xlarge 16xlarge"),
    "m5": (4, f"large {_TO_4XL} 12xlarge 24xlarge"),
    "m6i": (4, f"large {_TO_24XL} 32xlarge"),
    "m7i": (4, f"large {_TO_24XL} 48xlarge"),
    "m7i-flex": (4, f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge"),
    "m8i": (4, f"large {_TO_96XL}"),
    "m8i-flex": (4, f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge"),
    "r5": (8, f"large {_TO_24XL}"),
    "r5d": (8, f"large {_TO_24XL}"),
    "r6i": (8, f"large {_TO_24XL} 32xlarge"),
    "r7i": (8, f"large {_TO_24XL} 48xlarge"),
    "r8i": (8, f"large {_TO_96XL}"),
    "r8i-flex": (8, f"large {_TO_4XL} 8xlarge 12xlarge 16xlarge"),
}

# The rest: family -> size -> (vCPUs, GiB of memory, GPUs).
_OTHER: dict[str, dict[str, tuple[int, float, int]]] = {
    "c4": {"xlarge": (4, 7.5, 0), "2xlarge": (8, 15, 0), "4xlarge": (16, 30, 0), "8xlarge": (36, 60, 0)},
    "c5n": {
        "xlarge": (4, 10.5, 0),
        "2xlarge": (8, 21, 0),
        "4xlarge": (16, 42, 0),
        "9xlarge": (36, 96, 0),
        "18xlarge": (72, 192, 0),
    },
    "t3": {"medium": (2, 4, 0), "large": (2, 8, 0), "xlarge": (4, 16, 0), "2xlarge": (8, 32, 0)},
    "p2": {"xlarge": (4, 61, 1), "8xlarge": (32, 488, 8), "16xlarge": (64, 732, 16)},
    "p3": {"2xlarge": (8, 61, 1), "8xlarge": (32, 244, 4), "16xlarge": (64, 488, 8)},
    "p3dn": {"24xlarge": (96, 768, 8)},
    "p4d": {"24xlarge": (96, 1152, 8)},
    "p4de": {"24xlarge": (96, 1152, 8)},
    "p5": {"4xlarge": (16, 256, 1), "48xlarge": (192, 2048, 8)},
    "p5e": {"48xlarge": (192, 2048, 8)},
    "p5en": {"48xlarge": (192, 2048, 8)},
    "p6-b200": {"48xlarge": (192, 2048, 8)},
    "p6-b300": {"48xlarge": (192, 4096, 8)},
    "p6e-gb200": {"36xlarge": (144, 960, 4)},
    "g4dn": {
        "xlarge": (4, 16, 1),
        "2xlarge": (8, 32, 1),
        "4xlarge": (16, 64, 1),
        "8xlarge": (32, 128, 1),
        "12xlarge": (48, 192, 4),
        "16xlarge": (64, 256, 1),
    },
    "g5": {
        "xlarge": (4, 16, 1),
        "2xlarge": (8, 32, 1),
        "4xlarge": (16, 64, 1),
        "8xlarge": (32, 128, 1),
        "12xlarge": (48, 192, 4),
        "16xlarge": (64, 256, 1),
        "24xlarge": (96, 384, 4),
        "48xlarge": (192, 768, 8),
    },
    "g6": {
        "xlarge": (4, 16, 1),
        "2xlarge": (8, 32, 1),
        "4xlarge": (16, 64, 1),
        "8xlarge": (32, 128, 1),
        "12xlarge": (48, 192, 4),
        "16xlarge": (64, 256, 1),
        "24xlarge": (96, 384, 4),
        "48xlarge": (192, 768, 8),
    },
    "g6e": {
        "xlarge": (4, 32, 1),
        "2xlarge": (8, 64, 1),
        "4xlarge": (16, 128, 1),
        "8xlarge": (32, 256, 1),
        "12xlarge": (48, 384, 4),
        "16xlarge": (64, 512, 1),
        "24xlarge": (96, 768, 4),
        "48xlarge": (192, 1536, 8),
    },
    "g7": {
        "2xlarge": (8, 32, 1),
        "4xlarge": (16, 64, 1),
        "8xlarge": (32, 128, 1),
        "12xlarge": (48, 192, 2),
        "24xlarge": (96, 384, 4),
        "48xlarge": (192, 768, 8),
    },
    "g7e": {
        "2xlarge": (8, 64, 1),
        "4xlarge": (16, 128, 1),
        "8xlarge": (32, 256, 1),
        "12xlarge": (48, 512, 2),
        "24xlarge": (96, 1024, 4),
        "48xlarge": (192, 2048, 8),
    },
    "trn1": {"2xlarge": (8, 32, 0), "32xlarge": (128, 512, 0)},
    "trn1n": {"32xlarge": (128, 512, 0)},
    "trn2": {"48xlarge": (192, 2048, 0)},
}

# Two NeuronCores a Trainium chip, eight a Trainium2 chip.
_NEURONS = {"trn1.2xlarge": 2, "trn1.32xlarge": 32, "trn1n.32xlarge": 32, "trn2.48xlarge": 128}


def lookup(name: str) -> InstanceType:
    """The instance type of that name. Raises InvalidArgument, which names the nearest, for an unknown one.

    >>> lookup("ml.g5.12xlarge")
    InstanceType(name='ml.g5.12xlarge', cpus=48, memory_gib=192, gpus=4, neurons=0)
    """
    found = LOCAL.get(name) or _lookup_ml(name)
    if found is None:
        hint = suggestion(name, names())
        raise InvalidArgument("instance_type", f"instance_type {name!r} is not a known instance type; {hint}")
    return found


def names() -> Iterator[str]:
    """All known names, `local` and `local_gpu` first."""
    yield from LOCAL
    for family, (_, sizes) in _PLAIN.items():
        yield from (f"ml.{family}.{size}" for size in sizes.split())
    for family, rows in _OTHER.items():
        yield from (f"ml.{family}.{size}" for size in rows)


def _lookup_ml(name: str) -> InstanceType | None:
    prefix, _, rest = name.partition(".")
    family, _, size = rest.partition(".")
    if prefix != "ml":
        return None
    if family in _PLAIN and size in _PLAIN[family][1].split():
        cpus = _cpus_of(size)
        return InstanceType(name, cpus, cpus * _PLAIN[family][0], 0, 0)
    if size in _OTHER.get(family, {}):
        return InstanceType(name, *_OTHER[family][size], _NEURONS.get(rest, 0))
    return None


def _cpus_of(size: str) -> int:
    """vCPUs of a size in a family without accelerators: `large` is 2, `xlarge` 4, `Nxlarge` N times 4."""
    return 2 if size == "large" else 4 * int(size.removesuffix("xlarge") or 1)
