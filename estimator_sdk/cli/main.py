"""From the words of a command line to an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from ..errors import EstimatorError, InvalidArgument, JobNotFound
from ..naming import suggestion
from . import commands

EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
_HIDDEN = ("complete",)  # what the completion of a shell asks


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. `words` are those after the program's name."""
    words = sys.argv[1:] if words is None else list(words)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return _run(words)
    except EstimatorError as error:
        name = f"estimator {words[0]}" if words and words[0] in commands.COMMANDS else "estimator"
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_WRONG_INPUT if isinstance(error, (InvalidArgument, JobNotFound)) else 1
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough, as `head` does; nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else EXIT_WRONG_INPUT
    if words[0] == "--version":
        from .. import __version__

        print(f"estimator-sdk {__version__}")
        return 0
    name, *rest = words
    if name not in (*commands.COMMANDS, *_HIDDEN):
        raise InvalidArgument("command", f"{name!r} is not a command; {suggestion(name, commands.COMMANDS)}")
    command = commands.load(name)
    from .parser import Parser

    parser = Parser(f"estimator {name}", commands.COMMANDS.get(name, ""))
    command.add(parser)
    try:
        return command.run(parser.parse(rest))
    except SystemExit as exit:  # of --help
        return int(exit.code or 0)


def _help() -> str:
    width = max(map(len, commands.COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in commands.COMMANDS.items())
    purpose = "Run a training script over MPI as processes, containers or cloud instances."
    usage = f"usage: estimator COMMAND [OPTIONS]\n\n{purpose}"
    return f"{usage}\n\ncommands:\n{listed}\n\n`estimator COMMAND --help` has the options of one."


def _show_warning(message: Warning | str, *_: object) -> None:
    """A warning is a sentence, and its place in our code tells its reader nothing."""
    print(f"estimator: {message}", file=sys.stderr)
