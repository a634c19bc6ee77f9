"""`{"torch_distributed": {"enabled": True}}`: the script is run as torchrun would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Framework, ManyOnAHost


@dataclass(frozen=True)
class TorchDistributed(ManyOnAHost):
    """So many processes on each host, which can make one process group."""

    name: ClassVar[str] = "torch_distributed"
    framework: ClassVar[Framework | None] = "pytorch"


Options = TorchDistributed
