"""`{"parameter_server": {"enabled": True}}`: TensorFlow's `ParameterServerStrategy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Distribution, Framework


@dataclass(frozen=True)
class ParameterServer(Distribution):
    """The script is run once on each host, as chief or worker, and beside it a parameter server."""

    name: ClassVar[str] = "parameter_server"
    framework: ClassVar[Framework | None] = "tensorflow"


Options = ParameterServer
