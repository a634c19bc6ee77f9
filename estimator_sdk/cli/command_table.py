"""The commands there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    "delete": "remove what is kept of a finished job, except what it wrote to a store",
    "why": "explain why a job ended as it did",
    "describe": "show everything that is known about a job",
    "download": "download a job's model",
    "top": "show what the machines and ranks of a job do now",
    "timeline": "write the steps and phases of a job as a trace for Perfetto",
    "export": "give a job's metrics to Prometheus, TensorBoard, MLflow, OpenTelemetry or W&B",
    "checkpoints": "list, verify or download the snapshots of a job",
    "data": "make shards of many small files, for training scripts to read",
    "console": "show the jobs in a browser",
    "pool": "look at the machines of a pool, or at a job that was started from elsewhere",
    "images": "list or build training images",
    "doctor": "check what is installed, or, with a job, say why it is slow",
    "completion": "print the completion script for bash or zsh",
}
"""Name -> what it is for, in the order of `estimator --help`. The module has the same name."""


class Command(Protocol):
    """What a module of a command offers."""

    add: Callable[[Parser], None]
    """Add the command's arguments to its own parser. See the package `estimator_sdk.cli`."""
    run: Callable[[Namespace], int]
    """Do the command's work, and return its exit code. Raises EstimatorError for what `main` is to say."""


def load(name: str) -> Command:
    """The module of a command; those that ask for, or look at, jobs that were started have a folder of their own."""
    from pathlib import Path  # not for `estimator --help`

    is_of_jobs = Path(__file__).with_name("commands").joinpath("jobs", f"{name}.py").exists()
    folder = "commands.jobs" if is_of_jobs else "commands"
    module: Command = import_module(f"{__package__}.{folder}.{name}")
    return module


def find(words: Sequence[str]) -> tuple[str, Command, Sequence[str]]:
    """The command that words begin with: its name, its module, and the words that are left for it."""
    command = load(words[0])
    module = within(command).get(words[1]) if len(words) > 1 else None
    if module is not None:
        return " ".join(words[:2]), load(module), words[2:]
    return words[0], command, words[1:]


def within(command: Command) -> Mapping[str, str]:
    """The commands with options of their own below a command: the word after its name -> the module."""
    found: Mapping[str, str] = getattr(command, "WITHIN", {})
    return found
