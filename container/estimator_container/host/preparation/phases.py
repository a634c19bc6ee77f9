"""The phases of a host before its world: its code, what that requires, its channels."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...contract import entry_point
from ...contract.entry_point import CommandLine, FrameworkFunction, Program
from ...contract.names import BUCKET_SCHEMES, PROGRAM
from ...failures.kind import Kind
from ...failures.verdict import Verdict, last_words
from ...ranks.server import RankCommand
from ...runtime.errors import ConfigurationError
from ..commands import commands_of_ranks
from ..spec import HostSpec
from ..toolkit import Toolkit
from . import code, requirements

T = TypeVar("T")
Until = Callable[[Callable[[], bool]], None]
"""Handles events until what it is given is true, or ends the host because the job has ended."""


class PreparationFailed(Exception):
    """A host cannot be prepared, and the verdict says why."""

    def __init__(self, found: Verdict) -> None:
        super().__init__(found.message)
        self.verdict = found


class Preparation:
    """Makes a host ready for its ranks."""

    def __init__(self, spec: HostSpec, toolkit: Toolkit, until: Until) -> None:
        self._spec = spec
        self._toolkit = toolkit
        self._until = until

    def run(self) -> list[RankCommand]:
        """Returns what the ranks of this host run, step by step. Raises PreparationFailed and ConfigurationError."""
        layout, events = self._spec.layout, self._toolkit.events
        with events.phase("code"):
            program = self._fetch_program()
        is_package = isinstance(program, Program) and program.is_package
        if requirements.wanted(layout.code, is_package):
            with events.phase("requirements"):
                self._install(is_package)
        else:
            requirements.forget(layout.pip_settings)
        with events.phase("channels"):
            self._look_for_channels()
        return commands_of_ranks(self._spec, self._toolkit, program)

    def _fetch_program(self) -> Program | CommandLine | FrameworkFunction | None:
        """Bring the code here, and say what of it is run; None for steps. Raises ConfigurationError."""
        program = None if self._spec.settings.steps else self._named_program()
        folder = self._spec.layout.code
        source = self._code_source()
        self._aside(lambda: code.fetch(source, folder))
        return entry_point.program_in(program, folder) if isinstance(program, str) else program

    def _named_program(self) -> str | CommandLine | FrameworkFunction:
        """What the job names, as text where it is a file of its code. Raises ConfigurationError where it names none."""
        settings = self._spec.settings
        if settings.reserved.command is not None:
            return CommandLine(settings.reserved.command)
        if settings.program:
            return settings.program
        if settings.framework_function:
            return FrameworkFunction.parse(settings.framework_function)
        raise ConfigurationError(f"{PROGRAM} must name the file to run, not {settings.program!r}")

    def _code_source(self) -> str:
        """Where the code is on this host; what is only in S3 is fetched first. Raises ConfigurationError."""
        layout = self._spec.layout
        channeled = code.bundle_of(layout.channeled_code)
        source = channeled or self._spec.settings.reserved.submit_directory or layout.code
        if source.partition("://")[0] not in BUCKET_SCHEMES or os.listdir(layout.code):
            return source
        from ...agents import code_download  # platforms of ours bring the code

        path = os.path.join(self._toolkit.scratch, os.path.basename(source))
        exit_code, words = self._run_program([sys.executable, "-I", code_download.__file__, source, path])
        if exit_code != 0:
            why = last_words(words) or f"what fetches it ended with code {exit_code} and without a word"
            raise ConfigurationError(f"the code could not be fetched: {why}")
        return path

    def _install(self, package: bool) -> None:
        argv = [
            sys.executable,
            requirements.__file__,
            self._spec.layout.code,
            "package" if package else "",
            self._spec.settings.overlay or "",
            self._spec.layout.pip_settings,
        ]
        exit_code, words = self._run_program(argv)
        if exit_code != 0:
            name = self._spec.name
            what = f"pip could not install the code's requirements on {name}"
            raise PreparationFailed(Verdict(Kind.REQUIREMENTS, what, host=name, detail=last_words(words)))

    def _run_program(self, argv: Sequence[str]) -> tuple[int, str]:
        """Run a program of the toolkit's own to its end; returns its exit code and its last words."""
        ended: list[int] = []
        output = self._toolkit.start_program(argv, os.environ, ended.append)
        self._until(lambda: bool(ended))
        return ended[0], output.finish()

    def _aside(self, work: Callable[[], T]) -> T:
        """Do what may wait for a disk while others hear that this host is there. Raises what that raises."""
        found: list[T] = []
        self._toolkit.loop.aside(work, found.append)
        self._until(lambda: bool(found))
        return found[0]

    def _look_for_channels(self) -> None:
        """Say what is not there; only the script knows whether it needs it, and a host may have no share of it."""
        channels, data = self._spec.settings.channels.items(), self._spec.layout.data
        paths = {name: os.path.join(data, f"{name}_0" if each.is_piped else name) for name, each in channels}
        missing = self._aside(lambda: [name for name in paths if not os.path.exists(paths[name])])
        for name in missing:
            what = f"the channel {name!r} should be at {paths[name]}, but nothing is there; the script runs anyway"
            self._toolkit.events.say(what)
