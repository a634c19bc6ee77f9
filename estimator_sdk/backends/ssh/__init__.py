"""A pool of machines with ssh, on which hosts are processes or containers; the supervisor runs on the first of them."""

from __future__ import annotations

from ..port import Capabilities

CAPABILITIES = Capabilities(has_spares=True, has_pool=True)
"""Here, so that they can be asked for without what the backend itself needs."""
