"""`{"torch_distributed": {"enabled": True}}`: the script is run as torchrun would."""

from __future__ import annotations

from .base import ManyOnAHost


class TorchDistributed(ManyOnAHost):
    """So many processes on each host, which can make one process group."""

    framework = "pytorch"


Options = TorchDistributed
