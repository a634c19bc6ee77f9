"""What the configuration files of a host say, as SageMaker writes them below `/opt/ml/input/config`."""

from __future__ import annotations

from typing import Any

from estimator_container.contract.names import HOMOGENEOUS_GROUP

from .plan import Plan


def input_data_config(plan: Plan) -> dict[str, Any]:
    """What `inputdataconfig.json` says."""
    return {channel.name: dict(channel.config) for channel in plan.channels}


def resource_config(plan: Plan, host: str, interface: str) -> dict[str, Any]:
    """What `resourceconfig.json` says on one host."""
    names = [each.name for each in plan.hosts]
    return {
        "current_host": host,
        "hosts": names,
        "current_instance_type": plan.instance_type,
        "current_group_name": HOMOGENEOUS_GROUP,
        "instance_groups": [
            {
                "instance_group_name": HOMOGENEOUS_GROUP,
                "instance_type": plan.instance_type,
                "hosts": names,
            }
        ],
        "network_interface_name": interface,
    }
