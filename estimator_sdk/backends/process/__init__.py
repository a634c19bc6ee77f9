"""The embedded default: every host is a process tree of this machine."""

from __future__ import annotations

from ..port import Capabilities

CAPABILITIES = Capabilities(is_supervised=True, is_this_environment=True)
"""Here, so that they can be asked for without what the backend itself needs."""
