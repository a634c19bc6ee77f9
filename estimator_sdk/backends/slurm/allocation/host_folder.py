"""What a host finds on its node: its base directory, on the file system that the nodes share."""

from __future__ import annotations

from pathlib import Path

from estimator_container.contract.names import Layout
from estimator_container.runtime import machine

from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder
from ...supervised.supervisor import base_directory
from .nodes import Node


def fill(plan: Plan, folder: JobFolder, channels: JobFolder | None, host: HostPlan, node: Node, secret: bytes) -> None:
    """Write it, with links to the channels: of the job, or those that its node has for itself. Raises OSError."""
    layout = Layout(str(folder.hosts / host.base_dir))
    base_directory.write(plan, host.name, layout, machine.interface_for(node.address, "eth0"))
    base_directory.write_secret(layout, secret)
    base_directory.write_environment(layout, plan.environment)
    base_directory.link_channels(plan, channels or folder, host.name, Path(layout.data))
