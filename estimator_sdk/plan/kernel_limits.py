"""Whether the kernel can start what a plan says: its arguments and variables, as the toolkit will build them.

A rank that the kernel refuses could say no more than that, and not before it is its turn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_container.contract import environment as container_environment
from estimator_container.contract.hyperparameters import to_arguments
from estimator_container.contract.names import BASE_DIR_VARIABLE, DEFAULT_BASE_DIR, JOB_NAME_VARIABLE, Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.runtime import exec_limits
from estimator_container.runtime.exec_limits import Excess
from estimator_container.worlds import distributions as container_distributions
from estimator_container.worlds.mpi.world import MpiWorld
from estimator_container.worlds.world import DirectWorld, World

from ..errors import InvalidArgument
from . import host_documents
from .plan import Plan

CONTAINER_STACK = 8 << 20  # bytes; what an engine gives unless its daemon is told otherwise
_SPARE = 1024  # bytes of a variable; more than paths, addresses and numbers of a host add to what is known here
_INTERFACE, _ENDPOINT = "eth0", "255.255.255.255:65535"
_FILE = "pass it as a file in a channel"
_SHOWN = 3  # of the largest ones
_LEGIBLE = 80  # characters of a name


def check_processes(plan: Plan, base: str, around: Mapping[str, str], python: str) -> Plan:
    """The plan itself, if this machine can start its hosts and their ranks.

    Of a host it takes the base directory, the variables around the job's own and the interpreter of scripts. Raises
    InvalidArgument, which names what is too large and its size.
    """
    check_own()
    return _checked(plan, base, around, python, exec_limits.own_stack())


def check_containers(plan: Plan) -> Plan:
    """The plan itself, if hosts that are containers can start its ranks. Raises InvalidArgument as the other one."""
    return _checked(plan, DEFAULT_BASE_DIR, {}, "/usr/local/bin/python", CONTAINER_STACK)


def check_own() -> None:
    """Raises InvalidArgument if this process has set variables with which it could start no other one."""
    excess = exec_limits.excess((), os.environ, exec_limits.own_stack())
    if excess is not None:
        name = _short(excess.name) or ", ".join(_largest(os.environ))
        what = f"this process has variables ({name}) that are {excess.size:,} bytes long"
        raise InvalidArgument(
            "environment",
            f"{what}, but the kernel accepts {excess.limit:,}, so no program can start; remove them from os.environ",
        )


def _checked(plan: Plan, base: str, around: Mapping[str, str], python: str, stack: int) -> Plan:
    if not (plan.command or plan.steps):
        return plan
    variables = _variables(plan, base, around, python)
    for where, command in _commands(plan):
        excess = exec_limits.excess(command, variables, stack, _SPARE)
        if excess is not None:
            raise _refused(plan, where, command, variables, excess)
    if len(plan.hosts) > 1 and isinstance(_world(plan), MpiWorld):
        _check_daemons({**around, **plan.environment, **plan.hosts[-1].environment}, stack)
    return plan


def _check_daemons(variables: Mapping[str, str], stack: int) -> None:
    """Raises InvalidArgument if mpirun could not start a daemon on another host."""
    words = exec_limits.handed_to_daemons(variables)
    excess = exec_limits.excess(words, variables, stack, _SPARE)
    if excess is not None:
        what = "Open MPI passes OMPI_MCA_* variables to its daemons on other hosts twice, as variables and as arguments"
        sizes = f"together with all others they are {excess.size:,} bytes, but the kernel accepts {excess.limit:,}"
        raise InvalidArgument("environment", f"{what}; {sizes}; set fewer or shorter ones, or raise `ulimit -s`")


def _commands(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not plan.steps:
        yield "", plan.command
    for step in plan.steps:
        yield f"steps[{step.name!r}]", step.command


def _variables(plan: Plan, base: str, around: Mapping[str, str], python: str) -> dict[str, str]:
    """What a rank of the last host finds, whose name is the longest."""
    host = plan.hosts[-1]
    platform = {
        **around,
        **plan.environment,
        **host.environment,
        BASE_DIR_VARIABLE: base,
        JOB_NAME_VARIABLE: plan.job_name,
    }
    script = container_environment.of_the_script(_settings(plan, base), platform, plan.program, python)
    return {**script, **_of_world(plan)}


def _settings(plan: Plan, base: str) -> Settings:
    resources = host_documents.resource_config(plan, plan.hosts[-1].name, _INTERFACE)
    channels = host_documents.input_data_config(plan)
    variables = {JOB_NAME_VARIABLE: plan.job_name}
    return Settings.from_documents(Layout(base), resources, channels, plan.decoded, variables)


def _of_world(plan: Plan) -> dict[str, str]:
    world = _world(plan)
    if not isinstance(world, DirectWorld):
        return dict(getattr(world, "variables", ()))
    return {**world.defaults(_INTERFACE), **world.variables_of(world.size - 1, [_ENDPOINT] * len(world.hosts))}


def _world(plan: Plan) -> World | None:
    hosts = tuple(host.name for host in plan.hosts)
    return container_distributions.world(plan.decoded.reserved, hosts, 0)


def _refused(
    plan: Plan, where: str, command: tuple[str, ...], variables: Mapping[str, str], excess: Excess
) -> InvalidArgument:
    takes = f"but the kernel accepts {excess.limit:,}"
    if excess.kind == "argument":
        argument = where or _source_of_word(command[int(excess.name)], plan.decoded)
        return InvalidArgument(argument, f"{argument} is {excess.size:,} bytes as an argument, {takes}; {_FILE}")
    if excess.kind == "variable":
        argument = _source_of_variable(excess.name, plan)
        if argument == "distribution":
            what = f"custom_mpi_options makes the variable {excess.name} {excess.size:,} bytes long"
            return InvalidArgument(argument, f"{what}, {takes} for one; set variables with environment=")
        if argument == "instance_count":
            what = f"instance_count is {len(plan.hosts):,}, and the names of that many hosts make the variable"
            return InvalidArgument(argument, f"{what} {excess.name} {excess.size:,} bytes long, {takes} for one")
        together = _in_all(argument, excess.name, plan.decoded.script)
        what = f"{argument} makes the variable {_short(excess.name)} {excess.size:,} bytes long{together}"
        return InvalidArgument(argument, f"{what}, {takes} for one; {_FILE}")
    largest = ", ".join(_largest(variables))
    what = f"the arguments and variables of the script are {excess.size:,} bytes together (the largest are {largest})"
    hint = "pass large values as files in a channel, or raise the stack limit (`ulimit -s`), of which it is a quarter"
    return InvalidArgument(where or "hyperparameters", f"{what}, {takes}; {hint}")


def _source_of_word(word: str, decoded: Hyperparameters) -> str:
    """The argument of the estimator that a word of the command comes from."""
    carried = {"command": decoded.reserved.command, "arguments": decoded.reserved.arguments}
    for argument, words in carried.items():
        if words and word in words:
            return f"{argument}[{words.index(word)}]"
    return next(
        (
            _member("hyperparameters", name)
            for name, value in decoded.script.items()
            if word in to_arguments({name: value})
        ),
        "command",
    )


def _source_of_variable(variable: str, plan: Plan) -> str:
    """The same of a variable."""
    if variable in plan.environment:
        return _member("environment", variable)
    script, reserved = plan.decoded.script, plan.decoded.reserved
    for name in script:
        if variable in container_environment.names_of_hyperparameter(name):
            return _member("hyperparameters", name)
    if variable == "SM_USER_ARGS" and reserved.arguments is not None:
        return "arguments"
    if not variable.startswith("SM_"):
        return "environment"
    sizes = {
        "hyperparameters": len(container_environment.to_text(script)),
        "distribution": len(reserved.custom_mpi_options or ""),
        "instance_count": len(container_environment.to_text([host.name for host in plan.hosts])),
    }
    return max(sizes, key=sizes.__getitem__)


def _in_all(argument: str, variable: str, hyperparameters: Mapping[str, Any]) -> str:
    """What is to be known of a variable that holds all hyperparameters."""
    if argument != "hyperparameters" or not hyperparameters:
        return ""
    sizes = {name: len(container_environment.to_text([value])) for name, value in hyperparameters.items()}
    name = max(sizes, key=sizes.__getitem__)
    holds = "which holds all of them as JSON, where a letter such as 'é' takes six bytes"
    return f", {holds} (the largest is {_short(name)!r} with {sizes[name]:,})"


def _member(argument: str, name: str) -> str:
    return f"{argument}[{_short(name)!r}]"


def _short(name: str) -> str:
    return name if len(name) <= _LEGIBLE else f"{name[:_LEGIBLE]}…"


def _largest(variables: Mapping[str, str]) -> list[str]:
    return [_short(name) for name in sorted(variables, key=lambda name: -len(variables[name]))[:_SHOWN]]
