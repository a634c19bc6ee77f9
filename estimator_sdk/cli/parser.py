"""The parser of one command: argparse with our words for what is wrong, and the nearest right name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from ..errors import InvalidArgument
from ..values.naming import suggestion
from . import answer


class Parser(argparse.ArgumentParser):
    """Raises InvalidArgument where argparse would print its usage and exit."""

    def __init__(self, command: str, description: str) -> None:
        """`command` is the whole name, such as `estimator run`."""
        super().__init__(prog=command, description=description, allow_abbrev=False)
        self._takes_command = False
        self.add_argument("--json", action="store_true", help="answer in JSON on standard output")

    def take_command(self) -> None:
        """All that follows the first `--` is a command, which becomes the argument `command`, a tuple."""
        self._takes_command = True
        self.usage = "%(prog)s [OPTIONS] -- COMMAND [ARGUMENTS]"

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The words, parsed into arguments. Raises InvalidArgument with one sentence."""
        end = list(words).index("--") if self._takes_command and "--" in words else len(words)
        arguments, unknown = self.parse_known_args(words[:end])
        if self._takes_command:
            arguments.command = tuple(words[end + 1 :])
        if unknown:
            word = unknown[0].partition("=")[0]
            if self._takes_command and not word.startswith("-"):
                raise self._refused(
                    f"{word!r} is not an option", f"write -- before the command: {self.prog} … -- {word} …"
                )
            if not word.startswith("-"):
                raise self._refused(f"{word!r} is an unexpected argument", f"see {self.prog} --help")
            raise self._refused(f"{word} is not an option", suggestion(word, self.options()))
        return arguments

    def options(self) -> list[str]:
        """The long names of the options that are for people."""
        shown = (each for each in self._actions if each.help != argparse.SUPPRESS)
        return [name for each in shown for name in each.option_strings if name.startswith("--")]

    def print_help(self, file: object = None) -> None:
        """An answer like any other. `file` is argparse's."""
        answer.write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Called by argparse for arguments that it cannot parse. Raises InvalidArgument instead of exiting."""
        raise self._refused(message, f"see {self.prog} --help")

    def _refused(self, what: str, hint: str) -> InvalidArgument:
        return InvalidArgument(self.prog, f"{what}; {hint}")


def port(text: str) -> int:
    """The type of an option that takes a port of this machine."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port; give one from 1 to 65535, or 0 for a free one")
    return int(text)


def count(text: str) -> int:
    """The type of an option that takes a whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number
