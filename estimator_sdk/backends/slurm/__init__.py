"""Slurm: a job is one `sbatch`, and each of its hosts a step on one node of the allocation."""

from __future__ import annotations

from ..port import Capabilities

CAPABILITIES = Capabilities(is_scheduled=True, has_limits=True, has_spares=True, is_this_environment=True)
"""Here, so that they can be asked for without what the backend itself needs."""
