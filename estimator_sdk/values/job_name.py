"""Names of jobs: the rule they follow, and new ones that no other job has."""

from __future__ import annotations

import os
import re

from ..errors import InvalidArgument
from .naming import shown

MAX_LENGTH = 63

# "TrainingJobName" in the CreateTrainingJob API reference.
_PATTERN = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_SUFFIX_LENGTH = len("-2030-01-31-23-59-59-999-ffffff")


def checked(name: str, argument: str = "job_name") -> str:
    """`name` itself. Raises InvalidArgument, which suggests an allowed name, for what the service refuses."""
    if not isinstance(name, str):
        raise InvalidArgument(argument, f"{argument} must be a str, not {shown(name)} ({type(name).__name__})")
    if not is_name(name):
        rule = f"a name is up to {MAX_LENGTH} letters, digits and hyphens, and neither starts nor ends with a hyphen"
        raise InvalidArgument(argument, f"{argument} {name!r} is not allowed: {rule}; write {base_of(name)!r}")
    return name


def is_name(text: str) -> bool:
    """Whether a job may have that name: no path, no option, and one word to a shell."""
    return len(text) <= MAX_LENGTH and _PATTERN.fullmatch(text) is not None


def base_of(text: str) -> str:
    """The nearest allowed name to a file's or an image's name.

    >>> base_of("train_digits.v2")
    'train-digits-v2'
    """
    return re.sub(r"[^a-zA-Z0-9]+", "-", text).strip("-")[:MAX_LENGTH].rstrip("-") or "job"


def unique(base: str) -> str:
    """A new name: `base`, shortened if it must be, the time in UTC to the millisecond, and six random digits.

    The time keeps names in order; the digits keep jobs apart that start in the same millisecond.
    """
    from datetime import datetime, timezone  # not for who only asks whether something is a name

    now = datetime.now(timezone.utc)
    stamp = f"{now:%Y-%m-%d-%H-%M-%S}-{now.microsecond // 1000:03d}"
    return f"{base[: MAX_LENGTH - _SUFFIX_LENGTH].rstrip('-')}-{stamp}-{os.urandom(3).hex()}"
