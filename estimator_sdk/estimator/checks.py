"""What an estimator's arguments must be, one by one and together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeVar

from estimator_container.contract.hyperparameters import can_be_passed

from ..errors import InvalidArgument
from ..spec import channel_names, instances, limits
from ..spec.job_document import MetricDefinition, Tag
from ..spec.structure import Structure, member_name
from ..values import job_name, uris
from ..values.conform import conform, field_hints
from ..values.naming import suggestion
from .arguments import Arguments

S = TypeVar("S", bound=Structure)

_URIS = ("output_path", "checkpoint_s3_uri", "code_location", "model_uri")
_NOT_EMPTY = ("entry_point", "source_dir", "image_uri", "backend")
_WHAT_RUNS = ("entry_point", "command", "steps")  # one of them; none where the image has a program of its own
# An argument that means nothing without another one.
_NEEDS = (
    ("arguments", "entry_point"),
    ("command", "source_dir"),
    ("steps", "source_dir"),
    ("output_kms_key", "output_path"),
    ("disable_output_compression", "output_path"),
    ("training_repository_credentials_provider_arn", "training_repository_access_mode"),
    ("checkpoint_local_path", "checkpoint_s3_uri"),
    ("checkpoint_keep", "checkpoint_s3_uri"),
    ("subnets", "security_group_ids"),
    ("security_group_ids", "subnets"),
    ("max_wait", "use_spot_instances"),
)


def check(estimator: Arguments) -> None:
    """Make each argument read-only. Raises InvalidArgument for the first that cannot be used."""
    for name, hint in field_hints(type(estimator)).items():
        setattr(estimator, name, conform(hint, getattr(estimator, name), name))
    for name in limits.RANGES:
        limits.check(name, getattr(estimator, name))
    for name in _NOT_EMPTY:
        if getattr(estimator, name) == "":
            raise InvalidArgument(name, f"{name} is empty; give one, or leave it out")
    if "" in estimator.dependencies:
        raise InvalidArgument("dependencies", "dependencies has an empty path; name a file or a folder")
    for name in _URIS:
        uri = getattr(estimator, name)
        if uri is not None:
            setattr(estimator, name, uris.checked(name, uri))
    _check_instances(estimator)
    if estimator.base_job_name is not None:
        job_name.checked(estimator.base_job_name, "base_job_name")
    channel_names.checked(estimator.model_channel_name, "model_channel_name")
    _check_environment(estimator)
    _check_together(estimator)


def metric_definitions(given: Sequence[Mapping[str, str]] | None) -> tuple[MetricDefinition, ...] | None:
    """The definitions, typed. Raises InvalidArgument for an unknown key and for a pattern that is none."""
    if given is None:
        return None
    typed = tuple(_typed(MetricDefinition, item, f"metric_definitions[{index}]") for index, item in enumerate(given))
    for index, definition in enumerate(typed):
        where = f"metric_definitions[{index}]"
        try:
            pattern = re.compile(definition.regex)
        except (re.error, RecursionError, OverflowError) as error:
            what = f"{where}.Regex {definition.regex!r} is not a valid pattern: {error}"
            raise InvalidArgument(f"{where}.Regex", f"{what}; fix it") from None
        if pattern.groups == 0:
            what = f"{where}.Regex {definition.regex!r} has no group, from which the metric's value is read"
            raise InvalidArgument(f"{where}.Regex", f"{what}; put the value in parentheses, as in 'loss: ([0-9.]+)'")
        if not definition.name.strip() or not definition.name.isprintable():
            what = f"{where}.Name {definition.name!r} holds characters that cannot be shown"
            raise InvalidArgument(f"{where}.Name", f"{what}; use a name of printable characters, such as 'loss'")
    return typed


def tags(given: Sequence[Mapping[str, str]] | Mapping[str, str] | None) -> tuple[Tag, ...] | None:
    """The tags in typed form. Raises InvalidArgument for an unknown key."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return tuple(Tag(key=key, value=value) for key, value in given.items())
    return tuple(_typed(Tag, item, f"tags[{index}]") for index, item in enumerate(given))


def _typed(cls: type[S], given: Mapping[str, str], where: str) -> S:
    typed = cls.from_document(given, where)
    for key in typed.other:
        known = [member_name(field.name) for field in fields(cls) if field.name != "other"]
        raise InvalidArgument(where, f"{where} has the unknown key {key!r}; {suggestion(key, known)}")
    return typed


def _check_instances(estimator: Arguments) -> None:
    instances.gpus(estimator.instance_type)
    if estimator.instance_groups is None:
        return
    if (estimator.instance_type, estimator.instance_count) != ("local", 1) or not estimator.instance_groups:
        what = "instance_groups replaces instance_type and instance_count, and needs at least one group"
        raise InvalidArgument("instance_groups", f"{what}; give only one of them")
    for group in estimator.instance_groups:
        instances.gpus(group.instance_type)


def _check_environment(estimator: Arguments) -> None:
    if estimator.environment or estimator.inherit_environment is not None:
        from ..spec import environment_argument  # most have neither

        environment_argument.check(estimator.environment or {})
        environment_argument.check_inherited(estimator.inherit_environment)


def _check_together(estimator: Arguments) -> None:
    given = [name for name in _WHAT_RUNS if getattr(estimator, name) is not None]
    for name in given[1:]:
        what = f"{name} replaces {given[0]}"
        raise InvalidArgument(name, f"{what}; give only one of them")
    if estimator.command is not None and not estimator.command:
        raise InvalidArgument("command", "command is empty; give a program and its arguments, such as ['./run', '-v']")
    if estimator.source_dir is not None and not given:
        what = "source_dir has no effect without entry_point, command or steps"
        raise InvalidArgument("source_dir", f"{what}; give one of them, or leave it out")
    for name in ("arguments", "command"):
        if not all(map(can_be_passed, getattr(estimator, name) or ())):
            what = f"{name} holds a NUL byte or an unpaired surrogate, which no command line can carry"
            raise InvalidArgument(name, f"{what}; pass it as a file")
    if not given and estimator.image_uri is None:
        hint = "give entry_point='train.py', or the image_uri= of an image with a program of its own"
        raise InvalidArgument("entry_point", f"entry_point is missing, so there is nothing to run; {hint}")
    if estimator.dependencies and not given:
        raise InvalidArgument("dependencies", "dependencies needs entry_point=, which uses them; give both")
    if estimator.hosts is not None and estimator.hostfile is not None:
        raise InvalidArgument("hostfile", "hostfile names the machines that hosts names; give only one of them")
    for name, needed in _NEEDS:
        if getattr(estimator, name) not in (None, False) and getattr(estimator, needed) in (None, False):
            raise InvalidArgument(name, f"{name} has no effect without {needed}; give both, or neither")
    if estimator.max_wait is not None and estimator.max_wait < estimator.max_run:
        what = f"max_wait is {estimator.max_wait} s and includes the run, so it must be at least max_run"
        raise InvalidArgument("max_wait", f"{what}, {estimator.max_run} s; raise it, or lower max_run")
