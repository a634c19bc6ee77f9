"""The environment of the script: the `SM_*` variables that say what the job is and where things are.

The names and their forms are those of the `sagemaker-training` package 5.1.4, and beside them the newer
family (`SM_HOST_COUNT`, `SM_MASTER_ADDR`, …) that SageMaker's own scripts have begun to read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..runtime import machine
from ..runtime.errors import ConfigurationError
from .cluster import Cluster
from .entry_point import module_name
from .names import PLATFORM_VARIABLES
from .settings import Settings

MASTER_PORT = 7777  # what SageMaker's newer scripts expect in SM_MASTER_PORT
_LOG_LEVEL_INFO = 20
_SURELY_STARTS = 64 << 10  # bytes; half of what the kernel takes at least


def to_text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A value as the variables hold it: strings as they are, None empty, the rest as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def of_the_script(settings: Settings, platform: Mapping[str, str], program: str | None, python: str) -> dict[str, str]:
    """The whole environment of a script on this host: the platform's, less what is meant for the
    toolkit, with the contract's variables. `python` is the interpreter of scripts."""
    values = {
        **_job(settings, program, platform),
        **_cluster(settings.cluster),
        "SM_DISTRIBUTION_INSTANCE_GROUPS": _distribution_groups(settings),
        **_places(settings),
        **_hyperparameters(settings.hyperparameters.script),
    }
    env = {name: value for name, value in platform.items() if name not in PLATFORM_VARIABLES}
    env.update({name: to_text(value) for name, value in values.items()})
    env["SM_TRAINING_ENV"] = to_text(_training_env(values, settings))
    # A shell script that says `python` means the one that a Python script would be run by.
    env["PATH"] = os.pathsep.join([os.path.dirname(python), platform.get("PATH") or os.defpath])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [settings.layout.code, platform.get("PYTHONPATH", "")]))
    return env


def _job(settings: Settings, program: str | None, platform: Mapping[str, str]) -> dict[str, Any]:
    given, reserved, code = settings.hyperparameters, settings.reserved, settings.layout.code
    level, region = reserved.container_log_level, reserved.region
    return {
        "SM_USER_ENTRY_POINT": program,
        "SM_ENTRY_SCRIPT": program,
        "SM_MODULE_NAME": module_name(program) if program else None,
        "SM_MODULE_DIR": reserved.submit_directory or code,
        "SM_SOURCE_DIR": code,
        "SM_USER_ARGS": given.arguments,
        "SM_HPS": given.script,
        "SM_FRAMEWORK_MODULE": settings.framework_function,
        "SM_FRAMEWORK_PARAMS": given.for_frameworks,
        "SM_LOG_LEVEL": _LOG_LEVEL_INFO if level is None else level,
        "SAGEMAKER_JOB_NAME": reserved.job_name,
        "SAGEMAKER_REGION": platform.get("AWS_DEFAULT_REGION") if region is None else region,
    }


def _distribution_groups(settings: Settings) -> object:
    """The instance groups that the distribution spans: those that are named, else this host's own."""
    own = [settings.cluster.current_group_name] if any(settings.reserved.distributions.values()) else []
    return own if settings.reserved.instance_groups is None else settings.reserved.instance_groups


def _cluster(cluster: Cluster) -> dict[str, Any]:
    leader_address = cluster.addresses.get(cluster.leader)
    values: dict[str, Any] = {
        "SM_HOSTS": list(cluster.hosts),
        "SM_HOST_COUNT": len(cluster.hosts),
        "SM_CURRENT_HOST": cluster.current_host,
        "CURRENT_HOST": cluster.current_host,
        "SM_CURRENT_HOST_RANK": cluster.hosts.index(cluster.current_host),
        "SM_MASTER_ADDR": leader_address[0] if leader_address else cluster.leader,
        "SM_MASTER_PORT": MASTER_PORT,
        "SM_CURRENT_INSTANCE_TYPE": cluster.current_instance_type,
        "SM_CURRENT_INSTANCE_GROUP": cluster.current_group_name,
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": list(cluster.current_group_hosts),
        "SM_INSTANCE_GROUPS": [group.name for group in cluster.groups],
        "SM_INSTANCE_GROUPS_DICT": {
            group.name: {
                "instance_group_name": group.name,
                "instance_type": group.instance_type,
                "hosts": list(group.hosts),
            }
            for group in cluster.groups
        },
        "SM_IS_HETERO": cluster.is_heterogeneous,
        "SM_NETWORK_INTERFACE_NAME": cluster.network_interface,
        "SM_NUM_CPUS": machine.cpus(),
        "SM_NUM_GPUS": machine.gpus(),
        "SM_NUM_NEURONS": machine.neurons(),
    }
    if cluster.topology is not None:
        values["SM_TOPOLOGY"] = cluster.topology
    return values


def _places(settings: Settings) -> dict[str, Any]:
    channels, layout = sorted(settings.channels), settings.layout
    return {
        "SM_RESOURCE_CONFIG": settings.resource_config,
        "SM_INPUT_DATA_CONFIG": {name: channel.described for name, channel in settings.channels.items()},
        "SM_CHANNELS": channels,
        **{f"SM_CHANNEL_{name.upper()}": os.path.join(layout.data, name) for name in channels},
        "SM_INPUT_DIR": layout.input,
        "SM_INPUT_CONFIG_DIR": layout.config,
        "SM_INPUT_DATA_DIR": layout.data,
        "SM_MODEL_DIR": layout.model,
        "SM_CHECKPOINT_DIR": layout.checkpoints,
        "SM_OUTPUT_DIR": layout.output,
        "SM_OUTPUT_DATA_DIR": layout.output_data,
        "SM_OUTPUT_INTERMEDIATE_DIR": layout.output_intermediate,
    }


def _hyperparameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """`SM_HP_<KEY>`; for a key with a dash also the spelling that a shell can address."""
    named = [(*names_of_hyperparameter(name), value) for name, value in values.items()]
    # A key that is itself spelled with an underscore counts more than one with a dash.
    return {**{spelled: value for _, spelled, value in named}, **{own: value for own, _, value in named}}


def names_of_hyperparameter(name: str) -> tuple[str, str]:
    """The two variables that hold a hyperparameter; they are one where it has no dash."""
    own = f"SM_HP_{name.upper()}"
    return own, own.replace("-", "_")


def _training_env(values: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """All of it once more as one object, under the names that the peer package gives its members."""
    elsewhere = ("SM_HP_", "SM_CHANNEL_", "SM_CHANNELS", "SM_USER_ARGS")
    renamed = {"hps": "hyperparameters", "framework_params": "additional_framework_parameters"}
    result: dict[str, Any] = {}
    for variable, value in values.items():
        if variable.startswith("SM_") and not variable.startswith(elsewhere):
            name = variable[len("SM_") :].lower()
            result[renamed.get(name, name)] = value
    result["channel_input_dirs"] = {
        name: os.path.join(settings.layout.data, name) for name in sorted(settings.channels)
    }
    result["is_master"] = settings.cluster.current_host == settings.cluster.leader
    result["master_hostname"] = settings.cluster.leader
    result["job_name"] = settings.job_name
    return result


def interpreter(overlay: str | None) -> str:
    """The Python that runs scripts: that of the overlay once there is one, else this one."""
    if overlay:
        python = os.path.join(overlay, "bin", "python")
        if os.path.exists(python):
            return python
    return sys.executable


def check_size(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raises ConfigurationError for arguments and variables with which the kernel would start no program."""
    texts = (*argv, *environment, *environment.values())
    if sum(len(text) if text.isascii() else 4 * len(text) for text in texts) < _SURELY_STARTS:
        return
    from ..runtime import exec_limits  # hardly any job has need of it

    try:
        excess = exec_limits.excess(argv, environment, exec_limits.own_stack())
    except ValueError as error:
        raise ConfigurationError(f"the script cannot be given an argument or variable: {error}") from None
    if excess is not None:
        raise ConfigurationError(str(excess))
