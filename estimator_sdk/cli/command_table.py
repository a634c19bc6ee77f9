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
    "plan": "show what run would start, and start nothing",
    "ps": "list the jobs",
    "logs": "show what the ranks of a job wrote",
    "attach": "follow a running job to its end",
    "stop": "ask for the end of a job",
    "delete": "remove all that is kept of a job that has ended",
    "why": "say why a job ended as it did",
    "describe": "show all that is known of a job",
    "download": "bring a job's model here",
    "checkpoints": "list, verify or bring the snapshots of a job",
    "images": "list or build training images",
    "doctor": "check what is installed, and say how to fix what is missing",
    "completion": "print the completion of bash or zsh",
}
"""Name -> what it is for, in the order of `estimator --help`. The module has the same name."""


class Command(Protocol):
    """What a module of a command offers."""

    add: Callable[[Parser], None]
    run: Callable[[Namespace], int]


def load(name: str) -> Command:
    """The module of a command; those that ask for, or look at, jobs that were started have a folder of their own."""
    from pathlib import Path  # not for `estimator --help`

    is_of_jobs = Path(__file__).with_name("commands").joinpath("jobs", f"{name}.py").exists()
    folder = "commands.jobs" if is_of_jobs else "commands"
    module: Command = import_module(f"{__package__}.{folder}.{name}")
    return module
