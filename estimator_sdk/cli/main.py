"""From the words of a command line to an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence

from ..errors import EstimatorError, InvalidArgument, JobNotFound
from ..values.naming import suggestion
from ..values.standard_streams import Tolerant
from . import answer
from . import command_table as commands

EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
_HIDDEN = ("complete",)  # what the completion of a shell asks


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. `words` are those after the program's name."""
    words = sys.argv[1:] if words is None else list(words)
    _replace_closed_streams()
    with contextlib.redirect_stderr(Tolerant(sys.stderr)):
        return _main(words)


def _main(words: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = _run(words)
            answer.write("")  # what was printed goes with it
            return code
    except EstimatorError as error:
        _drop_pending()
        _tell(words, str(error))
        return EXIT_WRONG_INPUT if isinstance(error, (InvalidArgument, JobNotFound)) else 1
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read has enough, as `head` does
        _drop_pending()
        return 128 + 13  # SIGPIPE
    except OSError as error:  # of a folder that an option names, or of this machine
        _tell(words, f"{error}; check the path, its permissions, and the free space there")
        return 1


def _tell(words: list[str], sentence: str) -> None:
    name = f"estimator {words[0]}" if words and words[0] in commands.COMMANDS else "estimator"
    print(f"{name}: {sentence}", file=sys.stderr)


def _replace_closed_streams() -> None:
    """What was closed before we were started leads nowhere from now on, and no file of ours gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _drop_pending() -> None:
    """Let nothing be flushed at exit into a standard output that takes nothing."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        answer.write(f"{_help()}\n")
        return 0 if words else EXIT_WRONG_INPUT
    if words[0] == "--debug":
        from ..values import debugging

        debugging.show()
        return _run(words[1:])
    if words[0] == "--version":
        from .. import __version__

        answer.write(f"estimator-sdk {__version__}\n")
        return 0
    if (name := words[0]) not in (*commands.COMMANDS, *_HIDDEN):
        raise InvalidArgument("command", f"{name!r} is not a command; {suggestion(name, commands.COMMANDS)}")
    name, command, rest = commands.find(words)
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
    usage = f"usage: estimator [--debug] COMMAND [OPTIONS]\n\n{purpose}"
    return f"{usage}\n\ncommands:\n{listed}\n\n`estimator COMMAND --help` lists the options of a command."


def _show_warning(message: Warning | str, *_: object) -> None:
    """A warning is a sentence, and its place in our code tells its reader nothing."""
    print(f"estimator: {message}", file=sys.stderr)
