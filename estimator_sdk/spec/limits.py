"""Between what limits the numbers of a job are."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..values.naming import shown
from . import instances

DEFAULT_MAX_RUN = 86400  # seconds; the service's default for MaxRuntimeInSeconds is the same day
LONGEST_STOP_TIMEOUT = DEFAULT_MAX_RUN
_INTEGER = (1 << 31) - 1  # the largest of the API's type Integer
# Lowest and highest values, both allowed; those of the CreateTrainingJob API reference where it has them.
RANGES: dict[str, tuple[float, float | None]] = {
    "instance_count": (1, instances.MAX_HOSTS),
    "cpus": (0.01, _INTEGER),
    "memory": (0.03125, _INTEGER),  # 32 MiB: less does not hold the toolkit and a Python
    "gpus": (1, _INTEGER),
    "max_run": (1, _INTEGER),
    "max_wait": (1, _INTEGER),
    "max_retry_attempts": (1, 30),
    "keep_alive_period_in_seconds": (0, 21600),
    "volume_size": (1, _INTEGER),
    "container_log_level": (0, _INTEGER),
    "stop_timeout": (0, LONGEST_STOP_TIMEOUT),
    "hang_timeout": (0, None),
    "checkpoint_keep": (1, _INTEGER),
    "spare_hosts": (0, instances.MAX_HOSTS),
}
_COUNTABLE = (_INTEGER, instances.MAX_HOSTS)
"""Limits of what can be counted and not of what makes sense: they are no help to somebody who gave too little."""


def check(name: str, value: float | None) -> None:
    """Raises InvalidArgument for a number that is not within the limits of the argument of that name."""
    low, high = RANGES[name]
    if value is None or (low <= value and (high is None or value <= high)):
        return
    names_the_least = high is None or (value < low and high in _COUNTABLE)
    limits = f"at least {low}" if names_the_least else f"from {low} to {high}"
    raise InvalidArgument(name, f"{name} must be {limits}, not {shown(value)}")
