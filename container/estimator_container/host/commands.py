"""What the ranks of a host run, step by step, and the environment that they and MPI's programs have."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from ..contract import environment
from ..contract.entry_point import LONE_SCRIPT, CommandLine, FrameworkFunction, Program
from ..contract.names import PLATFORM_VARIABLES
from ..mesh.endpoint import interface_of
from ..ranks.script_runner import LONE_SCRIPT as LONE_SCRIPT_FILE
from ..ranks.script_runner import STACKS_VARIABLE, WEIGHTS_VARIABLE
from ..ranks.server import RankCommand
from ..ranks.wrapper import SOCKET_VARIABLE
from ..runtime import private_folder
from ..worlds.mpi import programs
from ..worlds.mpi.world import MpiWorld
from ..worlds.world import DirectWorld
from .spec import HostSpec
from .toolkit import Toolkit


def environment_of_programs(spec: HostSpec, toolkit: Toolkit) -> dict[str, str]:
    """The environment of MPI's programs and of the wrappers on this host."""
    own = {SOCKET_VARIABLE: toolkit.socket}
    if not isinstance(spec.world, MpiWorld):
        return {**os.environ, **own}
    from ..worlds.mpi import inherited

    seen = inherited.for_programs(os.environ, spec.settings.launch_variables)
    return {**spec.world.defaults(interface_of(spec.cluster), spec.may_use_fabric), **seen, **own}


def commands_of_ranks(
    spec: HostSpec, toolkit: Toolkit, program: Program | CommandLine | FrameworkFunction | None
) -> list[RankCommand]:
    """What each rank runs, step by step; `program` is None in a job with steps.

    Raises ConfigurationError for a command that the kernel would not start.
    """
    python = environment.interpreter(spec.settings.overlay)
    in_world = spec.world is not None
    if program is None:
        lines = [step.command(python, in_world) for step in spec.settings.steps]
    else:
        lines = [program.command(python, in_world, spec.settings.hyperparameters.arguments)]
    common = _common_command(spec, toolkit, program.name if program is not None else None, python)
    path = common.settings["PATH"]
    # Looked up where the script would find it: what requirements have installed is there too.
    found = [common._replace(argv=(shutil.which(word, path=path) or word, *words)) for word, *words in lines]
    if not in_world:
        found = [_leaving_stacks(command, toolkit) for command in found]
    seen = environment_of_programs(spec, toolkit)
    inherited = {name: value for name, value in seen.items() if name not in common.dropped}
    for command in found:
        environment.check_size(command.argv, {**inherited, **command.settings})
    return found


def _leaving_stacks(command: RankCommand, toolkit: Toolkit) -> RankCommand:
    """The same, so that a Python script without a world says where it stands, as ranks of a world do.

    By the path of what the plan names: `-m` takes longer, and what is imported for it could be files of the script's
    that are called as the standard library's.
    """
    python, *words = command.argv
    if python != command.python or words[:3] != ["-u", "-m", LONE_SCRIPT]:
        return command
    settings = {**command.settings, STACKS_VARIABLE: toolkit.stacks}
    return command._replace(argv=(python, "-u", LONE_SCRIPT_FILE, *words[3:]), settings=settings)


def _common_command(spec: HostSpec, toolkit: Toolkit, program: str | None, python: str) -> RankCommand:
    """What all steps of the job have in common."""
    world = spec.world
    settings = {
        # Open MPI's own choice is names in /tmp and /dev/shm that others can guess, and make first.
        "OMPI_MCA_orte_tmpdir_base": toolkit.scratch,
        "OMPI_MCA_btl_vader_backing_directory": toolkit.shared_memory,
        **({} if isinstance(world, MpiWorld) else programs.for_scripts(sys.executable)),
        **(world.defaults(interface_of(spec.cluster)) if isinstance(world, DirectWorld) else {}),
        **environment.of_the_script(spec.settings, _seen_by_ranks(spec), program, python),
    }
    if world is not None:
        settings[STACKS_VARIABLE] = toolkit.stacks
        settings[WEIGHTS_VARIABLE] = toolkit.socket
    if isinstance(world, MpiWorld):
        from ..worlds.mpi.command_line import RULES_VARIABLE

        if RULES_VARIABLE not in os.environ:
            settings[RULES_VARIABLE] = _write_rules(spec, toolkit)
        settings.update(world.variables)
    return RankCommand(
        argv=(),
        folder=spec.layout.code,
        frames=spec.layout.frames,
        # What starts the ranks is not for programs that a rank starts by itself.
        dropped=(*sorted(PLATFORM_VARIABLES), SOCKET_VARIABLE, *programs.STARTING_VARIABLES),
        settings=settings,
        python=python,
        # Where there are checkpoints, whoever publishes them must see whether the ranks that wrote them live.
        alive=spec.layout.alive if spec.settings.keeps_checkpoints else "",
    )


def _seen_by_ranks(spec: HostSpec) -> Mapping[str, str]:
    if not isinstance(spec.world, MpiWorld):
        return os.environ
    from ..worlds.mpi import inherited

    return inherited.for_ranks(os.environ, spec.settings.launch_variables)


def _write_rules(spec: HostSpec, toolkit: Toolkit) -> str:
    """The leader decides whether they are followed, for ranks that did not agree would wait for ever."""
    from ..worlds.mpi import command_line

    path = os.path.join(toolkit.scratch, "rules")
    private_folder.write(path, command_line.rules(len(spec.cluster.hosts)))
    return path
