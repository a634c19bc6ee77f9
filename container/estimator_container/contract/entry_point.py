"""The user's program: its name, its kind and the command that runs it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ..runtime.errors import ConfigurationError
from .names import TRAINING_MODULE

_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*")
PACKAGE_FILES = ("setup.py", "pyproject.toml")


def check_name(name: str) -> str:
    """`name` itself, if it can be an entry point. Raises ConfigurationError otherwise."""
    parts = name.split("/")
    if _NAME.fullmatch(name) is None or "." in parts or ".." in parts:
        raise ConfigurationError(
            f"the entry point {name!r} is not allowed: give a path inside the code folder, made of letters, digits, "
            "'.', '_', '+', '-' and '/'"
        )
    return name


class Program(NamedTuple):
    """An entry point with what must be known of the code around it."""

    name: str
    """Its path in the code folder."""
    is_package: bool
    """It is the main module of a package beside it, which is installed first."""
    names_interpreter: bool
    """The file itself says what runs it, by `#!` or by being a binary; Python files do not need to."""

    @property
    def is_python(self) -> bool:
        """Whether the program is a Python file."""
        return self.name.endswith(".py")

    def command(self, python: str, in_world: bool, arguments: Sequence[str] = ()) -> list[str]:
        """The command line, for the code folder as working directory.

        Python is told not to buffer, so that a line is in the log as soon as it is printed. It runs the script through
        `script_runner` in a world, and through `lone_script` without one.

        >>> Program("run/train.sh", False, True).command("python", False, ["--lr", "0.1"])
        ['./run/train.sh', '--lr', '0.1']
        """
        if not self.is_python:
            shell = [] if self.names_interpreter else ["/bin/sh"]
            return [*shell, f"./{self.name}", *arguments]
        words = ["-m", module_name(self.name).replace("/", ".")] if self.is_package else [self.name]
        return [python, "-u", *_runner(in_world), *words, *arguments]


class CommandLine(NamedTuple):
    """A complete command instead of an entry point."""

    words: tuple[str, ...]
    """The program and its arguments; `python` and `python3` are the interpreter that runs scripts."""

    @property
    def name(self) -> None:
        """It is not a file of the code."""

    def command(self, python: str, in_world: bool, arguments: Sequence[str] = ()) -> list[str]:
        """The command line, as `Program.command` gives it; it has its arguments already.

        >>> CommandLine(("python3", "-m", "train", "--lr", "0.1")).command("/bin/python", True)
        ['/bin/python', '-u', '-m', 'estimator_container.ranks.script_runner', '-m', 'train', '--lr', '0.1']
        >>> CommandLine(("bash", "run.sh")).command("/bin/python", True)
        ['bash', 'run.sh']
        """
        program, *rest = self.words
        if program not in PYTHONS:
            return list(self.words)
        runs_script = (rest[:1] == ["-m"] and len(rest) > 1) or "".join(rest[:1]).endswith(".py")
        return [python, "-u", *(_runner(in_world) if runs_script else []), *rest]


class FrameworkFunction(NamedTuple):
    """A function of the image's framework instead of an entry point, as `SAGEMAKER_TRAINING_MODULE` names it."""

    module: str
    function: str

    @property
    def name(self) -> None:
        """It is not a file of the code."""

    def command(self, python: str, in_world: bool, arguments: Sequence[str] = ()) -> list[str]:
        """The command line; the function is called without arguments, and finds everything in its environment.

        >>> FrameworkFunction("my.framework", "train").command("python", False)[-3:]
        ['-m', 'estimator_container.ranks.framework_function', 'my.framework:train']
        """
        return [python, "-u", *_runner(in_world), "-m", FUNCTION_CALLER, f"{self.module}:{self.function}"]

    @classmethod
    def parse(cls, text: str) -> FrameworkFunction:
        """Raises ConfigurationError for what names no function."""
        module, _, function = text.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise ConfigurationError(
                f"{TRAINING_MODULE} must name a function as 'module:function', not {text!r}; fix it in the image"
            )
        return cls(module, function)


PYTHONS = ("python", "python3")
FUNCTION_CALLER = "estimator_container.ranks.framework_function"
SCRIPT_RUNNER = "estimator_container.ranks.script_runner"
LONE_SCRIPT = "estimator_container.ranks.lone_script"
HEAD_BYTES = 4  # enough to recognise a program that needs no interpreter named


def _runner(in_world: bool) -> list[str]:
    return ["-m", SCRIPT_RUNNER if in_world else LONE_SCRIPT]


def module_name(name: str) -> str:
    """The name by which Python imports an entry point: the file name without `.py`."""
    return name[: -len(".py")] if name.endswith(".py") else name


def program(name: str, files: Collection[str], head: Callable[[str], bytes]) -> Program:
    """Look at the code: `files` are the paths in it, `head` gives the first bytes of one.

    Raises ConfigurationError for a name that is not allowed or not there.
    """
    check_name(name)
    package = name.endswith(".py") and any(file in files for file in PACKAGE_FILES)
    if name not in files:
        there = ", ".join(sorted(files)[:20]) or "nothing"
        raise ConfigurationError(f"the entry point {name!r} is not in the code; there is {there}")
    return Program(name, package, head(name).startswith((b"#!", b"\x7fELF")))


def program_in(name: str, code: str) -> Program:
    """As `program`, for a folder; a file that is run as a command is made executable."""
    files = {os.path.relpath(os.path.join(folder, file), code) for folder, _, names in os.walk(code) for file in names}

    def head(file: str) -> bytes:
        with open(os.path.join(code, file), "rb") as opened:
            return opened.read(HEAD_BYTES)

    found = program(name, files, head)
    if not found.is_python:
        path = os.path.join(code, name)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return found
