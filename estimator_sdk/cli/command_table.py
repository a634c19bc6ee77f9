"""The commands there are."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from argparse import Namespace

    from .parser import Parser

COMMANDS = {
    "run": "run a command on one or many hosts",
    "fit": "run the job that a file describes",
    "plan": "show what run would start, without starting it",
    "ps": "list the jobs",
    "logs": "show what the ranks of a job wrote",
    "attach": "follow a running job to its end",
    "stop": "ask a job to stop",
    "delete": "remove everything that is kept of a finished job",
    "why": "explain why a job ended as it did",
    "describe": "show everything that is known about a job",
    "download": "download a job's model",
    "checkpoints": "list, verify or download the snapshots of a job",
    "images": "list or build training images",
    "doctor": "check what is installed, and how to install what is missing",
    "completion": "print the completion script for bash or zsh",
}
"""Name -> what it is for, in the order of `estimator --help`. The module has the same name."""
_OF_JOBS = ("ps", "logs", "attach", "stop", "why", "describe", "download", "delete")
"""Those that ask for, or look at, jobs that were started."""


class Command(Protocol):
    """What a module of a command offers."""

    add: Callable[[Parser], None]
    """Add the command's arguments to its own parser. See the package `estimator_sdk.cli`."""
    run: Callable[[Namespace], int]
    """Do the command's work, and return its exit code. Raises EstimatorError for what `main` is to say."""


def load(name: str) -> Command:
    """Import the module of the command with that name, which must be in `COMMANDS`."""
    folder = "commands.jobs" if name in _OF_JOBS else "commands"
    module: Command = import_module(f"{__package__}.{folder}.{name}")
    return module
