"""`{"parameter_server": {"enabled": True}}`: TensorFlow's `ParameterServerStrategy`."""

from __future__ import annotations

from .base import Distribution


class ParameterServer(Distribution):
    """The script is run once on each host, as chief or worker, and beside it a parameter server."""

    framework = "tensorflow"


Options = ParameterServer
