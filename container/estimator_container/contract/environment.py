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
from . import hyperparameters as hp
from .configuration import Cluster, Configuration
from .entry_point import module_name
from .names import PLATFORM_VARIABLES, TRAINING_MODULE, Layout

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


def of_the_script(
    configuration: Configuration, layout: Layout, platform: Mapping[str, str], program: str | None, python: str
) -> dict[str, str]:
    """The whole environment of a script on this host: the platform's, less what is meant for the
    toolkit, with the contract's variables. `python` is the interpreter of scripts."""
    decoded = hp.decode(configuration.raw_hyperparameters)
    values = {
        **_job(decoded, program, layout, platform),
        **_cluster(configuration.cluster),
        "SM_DISTRIBUTION_INSTANCE_GROUPS": _distribution_groups(decoded, configuration.cluster),
        **_places(configuration, layout),
        **_hyperparameters(hp.for_the_script(decoded)),
    }
    env = {name: value for name, value in platform.items() if name not in PLATFORM_VARIABLES}
    env.update({name: to_text(value) for name, value in values.items()})
    env["SM_TRAINING_ENV"] = to_text(_training_env(values, configuration, layout, platform))
    # A shell script that says `python` means the one that a Python script would be run by.
    env["PATH"] = os.pathsep.join([os.path.dirname(python), platform.get("PATH") or os.defpath])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [layout.code, platform.get("PYTHONPATH", "")]))
    return env


def _job(decoded: dict[str, Any], program: str | None, layout: Layout, platform: Mapping[str, str]) -> dict[str, Any]:
    script = hp.for_the_script(decoded)
    return {
        "SM_USER_ENTRY_POINT": program,
        "SM_ENTRY_SCRIPT": program,
        "SM_MODULE_NAME": module_name(program) if program else None,
        "SM_MODULE_DIR": decoded.get("sagemaker_submit_directory") or layout.code,
        "SM_SOURCE_DIR": layout.code,
        "SM_USER_ARGS": hp.script_arguments(decoded),
        "SM_HPS": script,
        "SM_FRAMEWORK_MODULE": platform.get(TRAINING_MODULE),
        "SM_FRAMEWORK_PARAMS": hp.for_the_framework(decoded),
        "SM_LOG_LEVEL": decoded.get("sagemaker_container_log_level", _LOG_LEVEL_INFO),
        "SAGEMAKER_JOB_NAME": decoded.get("sagemaker_job_name"),
        "SAGEMAKER_REGION": decoded.get("sagemaker_region", platform.get("AWS_DEFAULT_REGION")),
    }


def _distribution_groups(decoded: dict[str, Any], cluster: Cluster) -> Any:  # noqa: ANN401 - any JSON value
    """The instance groups that the distribution spans: those that are named, else this host's own."""
    spans_hosts = any(value and hp.enables_distribution(name) for name, value in decoded.items())
    own = [cluster.current_group_name] if spans_hosts else []
    return decoded.get("sagemaker_distribution_instance_groups", own)


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


def _places(configuration: Configuration, layout: Layout) -> dict[str, Any]:
    channels = sorted(configuration.channels)
    return {
        "SM_RESOURCE_CONFIG": configuration.resource_config,
        "SM_INPUT_DATA_CONFIG": configuration.channels,
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


def _hyperparameters(values: dict[str, Any]) -> dict[str, Any]:
    """`SM_HP_<KEY>`; for a key with a dash also the spelling that a shell can address."""
    named = [(*names_of_hyperparameter(name), value) for name, value in values.items()]
    # A key that is itself spelled with an underscore counts more than one with a dash.
    return {**{spelled: value for _, spelled, value in named}, **{own: value for own, _, value in named}}


def names_of_hyperparameter(name: str) -> tuple[str, str]:
    """The two variables that hold a hyperparameter; they are one where it has no dash."""
    own = f"SM_HP_{name.upper()}"
    return own, own.replace("-", "_")


def _training_env(
    values: dict[str, Any], configuration: Configuration, layout: Layout, platform: Mapping[str, str]
) -> dict[str, Any]:
    """All of it once more as one object, under the names that the peer package gives its members."""
    elsewhere = ("SM_HP_", "SM_CHANNEL_", "SM_CHANNELS", "SM_USER_ARGS")
    renamed = {"hps": "hyperparameters", "framework_params": "additional_framework_parameters"}
    result: dict[str, Any] = {}
    for variable, value in values.items():
        if variable.startswith("SM_") and not variable.startswith(elsewhere):
            name = variable[len("SM_") :].lower()
            result[renamed.get(name, name)] = value
    result["channel_input_dirs"] = {name: os.path.join(layout.data, name) for name in sorted(configuration.channels)}
    result["is_master"] = configuration.cluster.current_host == configuration.cluster.leader
    result["master_hostname"] = configuration.cluster.leader
    result["job_name"] = platform.get("TRAINING_JOB_NAME")
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
