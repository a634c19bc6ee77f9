"""The commands of the build of Horovod, run with their output in a log, and how far that says the build is."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

VERSION = "0.28.1"
DURATION = "about 3-7 minutes on two cores"
REPORT_EVERY = 15.0  # seconds between two lines of progress where no terminal shows them


class BuildError(Exception):
    """Why there is no Horovod now, and what to do."""


@dataclass
class Progress:
    """How far the build is, by what make says: one line of a terminal, or else a line now and then."""

    stream: TextIO
    started: float
    mode: Literal["summary", "verbose", "quiet"] = "summary"
    percent: int | None = None
    part: str = "CMake"
    shown: float = float("-inf")

    def read(self, line: str) -> None:
        """Take in a line of the build's output."""
        if self.mode == "verbose":
            self.stream.write(line)
        if step := re.search(r"\[ *(\d+)%\] (?:Building|Linking) .* (\S+)", line):
            self.percent = int(step[1])
            names = {"horovod/tensorflow": "TensorFlow", "horovod/torch": "PyTorch", "gloo": "Gloo"}
            self.part = next((name for folder, name in names.items() if folder in step[2]), self.part)

    def text(self, now: float) -> str:
        minutes, seconds = divmod(int(now - self.started), 60)
        done = self.part if self.percent is None else f"{self.percent} % ({self.part})"
        return f"building Horovod {VERSION}: {done} after {minutes}:{seconds:02}; it takes {DURATION}"

    def show(self, now: float) -> None:
        """Write how far it is, if it is time to."""
        terminal = self.stream.isatty()
        if self.mode == "summary" and now - self.shown >= (1 if terminal else REPORT_EVERY):
            self.shown = now
            self.stream.write(f"\r\x1b[K{self.text(now)}" if terminal else f"{self.text(now)}\n")
            self.stream.flush()


def output(child: subprocess.Popen[bytes]) -> Iterator[str]:
    """What the child writes, line by line, and an empty string in every second without a line."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        assert child.stdout is not None
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=1):
                yield ""
            elif chunk := os.read(child.stdout.fileno(), 65536):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") + "\n" for line in lines)
            else:
                return


def run(command: list[str], log: TextIO, progress: Progress, env: dict[str, str] | None = None) -> None:
    """Run a command, with its output in the log. Raises BuildError when it fails."""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        try:
            for line in output(child):
                log.write(line)
                progress.read(line)
                progress.show(time.monotonic())
        except BaseException:
            child.terminate()
            raise
    log.flush()
    if child.returncode != 0:
        tail = "".join(Path(log.name).read_text(errors="replace").splitlines(keepends=True)[-25:])
        raise BuildError(
            f"{shlex.join(command)} ended with exit code {child.returncode}; "
            f"all that it said is in {log.name}, which ends with:\n{tail}"
        )
