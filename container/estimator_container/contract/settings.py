"""All that a host is told before it starts: by the files below `input/config`, and by the platform's variables."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..runtime.errors import ConfigurationError
from . import names
from .cluster import Cluster
from .names import Layout
from .reserved import Hyperparameters, Reserved
from .steps import Step


class HostChannel(NamedTuple):
    """One of the script's channels."""

    is_piped: bool
    described: Any
    """Its entry in `inputdataconfig.json`, which the script is told as it is."""


class Restarts(NamedTuple):
    """How often a job has begun again, and may."""

    so_far: int = 0
    at_most: int = 0
    """As far as the platform tells."""

    def next(self, so_far: int | None) -> Restarts:
        """Those of the attempt that follows, before which there were so many; None where the platform does not say."""
        return self._replace(so_far=self.so_far + 1 if so_far is None else so_far)


class Settings(NamedTuple):
    """What a host is told, checked and decoded."""

    layout: Layout
    cluster: Cluster
    resource_config: Mapping[str, Any]
    """What `resourceconfig.json` holds, which the script is told as it is."""
    channels: Mapping[str, HostChannel]
    """Those of the script; what comes to the toolkit itself is left out."""
    keeps_checkpoints: bool
    """Whether the platform publishes them."""
    hyperparameters: Hyperparameters
    job_name: str | None
    program: str | None
    """The entry point that the job names."""
    framework_function: str | None
    """What the image runs where the job names none, as `module:function`."""
    # Of these each is described where its variable is named.
    trusts_network: bool
    shows_console: bool
    listen_fd: int | None
    lifeline_fd: int | None
    scratch: str | None
    shared_memory: str | None
    overlay: str | None
    hosts_per_machine: int
    transport: str | None
    world_timeout: float
    platform_address: str | None
    restarts: Restarts
    """Of the first attempt on this host."""
    hang_floor: float
    stop_timeout: float

    @classmethod
    def read(cls, layout: Layout, variables: Mapping[str, str]) -> Settings:
        """From the files of a host, and the variables that it was started with.

        Raises ConfigurationError for one that is missing or malformed.
        """
        resources = _read_object(layout.resource_config)
        hyperparameters = Hyperparameters.read(_read_object(layout.hyperparameters))
        channels = _read_object(layout.input_data_config)
        return cls.from_documents(layout, resources, channels, hyperparameters, variables)

    @classmethod
    def from_documents(
        cls,
        layout: Layout,
        resources: Mapping[str, Any],
        channels: Mapping[str, Any],
        hyperparameters: Hyperparameters,
        variables: Mapping[str, str],
    ) -> Settings:
        """As `read`, of files that have been read: `resourceconfig.json`, `inputdataconfig.json` and the third one."""
        return cls(
            layout=layout,
            cluster=Cluster.read(
                resources,
                layout.resource_config,
                variables.get(names.HOST_ADDRESSES),
                variables.get(names.INTERFACE),
            ),
            resource_config=resources,
            channels={name: _channel(given) for name, given in channels.items() if name not in names.OUR_CHANNELS},
            keeps_checkpoints=os.path.exists(layout.checkpoint_config),
            hyperparameters=hyperparameters,
            job_name=variables.get(names.JOB_NAME_VARIABLE),
            program=hyperparameters.reserved.program_in(variables),
            framework_function=variables.get(names.TRAINING_MODULE),
            trusts_network=_choice(variables, names.TRUST_NETWORK),
            shows_console=variables.get(names.CONSOLE) != "off",
            listen_fd=_descriptor(variables, names.LISTEN_FD),
            lifeline_fd=_descriptor(variables, names.LIFELINE_FD),
            scratch=variables.get(names.SCRATCH_DIR),
            shared_memory=variables.get(names.SHARED_MEMORY_DIR),
            overlay=variables.get(names.OVERLAY_DIR),
            hosts_per_machine=int(_number(variables, names.HOSTS_PER_MACHINE, 1)),
            transport=variables.get(names.TRANSPORT),
            world_timeout=_number(variables, names.WORLD_TIMEOUT, names.DEFAULT_WORLD_TIMEOUT),
            platform_address=variables.get(names.PLATFORM_ADDRESS),
            restarts=Restarts(
                int(_number(variables, names.RESTARTS, 0)), int(_number(variables, names.MAX_RESTARTS, 0))
            ),
            hang_floor=_number(variables, names.HANG_FLOOR, names.DEFAULT_HANG_FLOOR),
            stop_timeout=_number(variables, names.STOP_TIMEOUT, names.DEFAULT_STOP_TIMEOUT),
        )

    @property
    def reserved(self) -> Reserved:
        """The reserved hyperparameters, decoded."""
        return self.hyperparameters.reserved

    @property
    def hang_timeout(self) -> float:
        """Seconds for which ranks may stand still; 0 for ever."""
        given = self.reserved.hang_timeout
        return names.DEFAULT_HANG_TIMEOUT if given is None else given

    @property
    def steps(self) -> tuple[Step, ...]:
        """Empty for a job with an entry point."""
        return self.reserved.steps or ()

    @property
    def launch_variables(self) -> tuple[str, ...]:
        """The variables for launchers that the user has set for this job; others of that kind are inherited."""
        return self.reserved.launch_variables or ()


def read_secret(layout: Layout) -> bytes | None:
    """The job's secret, taken out of the file system; None when the platform gave none.

    Raises ConfigurationError for an empty one, which anybody could guess.
    """
    for path in (layout.world_secret, layout.channeled_secret):
        try:
            with open(path, "rb") as file:
                secret = file.read()
        except FileNotFoundError:
            continue
        _remove(path)
        if not secret:
            raise ConfigurationError(f"{path} is empty; the platform must write a secret into it")
        return secret
    return None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except PermissionError:
        pass  # a platform may give channels for reading only, and to nobody but this container
    except OSError as error:
        if error.errno != errno.EROFS:
            raise


def read_environment(layout: Layout) -> dict[str, str]:
    """The variables that the platform left in a file, taken out of the file system; none without one."""
    if not os.path.exists(layout.environment):
        return {}
    environment = _read_object(layout.environment)
    os.unlink(layout.environment)
    for name, value in environment.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"{layout.environment} must hold strings, but {name} is {type(value).__name__}")
    return environment


def gpu_share(variables: Mapping[str, str]) -> tuple[int, int]:
    """Which share of the GPUs is this host's, from 0, and of how many. Raises ConfigurationError.

    >>> gpu_share({names.GPU_SHARE: "1/2"}), gpu_share({})
    ((1, 2), (0, 1))
    """
    text = variables.get(names.GPU_SHARE) or "0/1"
    number, _, shares = text.partition("/")
    if not (number.isdecimal() and shares.isdecimal() and int(number) < int(shares)):
        raise ConfigurationError(
            f"{names.GPU_SHARE} must be the number of a share and how many there are, not {text!r}"
        )
    return int(number), int(shares)


def _read_object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        what = "the platform must write it before it starts the host"
        raise ConfigurationError(f"{path} is missing; {what}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def _channel(described: object) -> HostChannel:
    return HostChannel(isinstance(described, dict) and described.get("TrainingInputMode") == "Pipe", described)


def _choice(variables: Mapping[str, str], name: str) -> bool:
    choice = variables.get(name) or "0"
    if choice not in ("0", "1"):
        raise ConfigurationError(f'{name} must be "1" or "0", not {choice!r}')
    return choice == "1"


def _descriptor(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name)
    if text and not text.isdecimal():
        raise ConfigurationError(f"{name} must be the number of a file descriptor, such as 3, not {text!r}")
    return int(text) if text else None


def _number(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigurationError(f"{name} must be a number such as {default:g}, not {text!r}")
    return value
