"""Local Docker mode: every host is a container."""

from __future__ import annotations

from ..port import Capabilities

CAPABILITIES = Capabilities(is_supervised=True, has_images=True, has_limits=True)
"""Here, so that they can be asked for without what the backend itself needs."""
