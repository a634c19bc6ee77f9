"""Where the threads of a script are, and whether that is a call in which ranks wait for each other."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ...ranks import script_runner

_THREAD = re.compile(r"^(?:(?:Current t|T)hread 0x[0-9a-f]+|Stack) .*\n", re.MULTILINE)  # differs from rank to rank
_ANOTHER = "\n  in another thread:\n"
_FRAME = re.compile(r'^\s*File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.MULTILINE)
_OURS = tuple(f'File "{path}"' for path in (script_runner.__file__, script_runner.LONE_SCRIPT))
_LIBRARIES = re.compile(r"/(?:torch/distributed|horovod|mpi4py)/")
_CALL = re.compile(
    r"(?P<receiver>[\w.]*)[\])]*\s*\.\s*(?P<name>"
    r"I?barrier|I?bcast|broadcast|I?all_?reduce|I?reduce(?:_scatter(?:_block)?)?|I?all_?gatherv?|I?gatherv?|I?scatterv?"
    r"|I?all_?to_?all[vw]?|[IRBS]{0,2}send(?:_?recv(?:_replace)?)?|I?m?recv|I?m?probe|wait(?:all|any|some)?|fence"
    r"|finalize|accept|connect|disconnect)\s*\(",
    re.IGNORECASE,
)
_NUMERIC = {"np", "numpy", "tf", "torch", "jnp", "jax", "pd", "functools", "operator", "add", "multiply", "os"}
"""Whose `reduce`, `gather` and the like compute."""
_OF_TWO = re.compile(r"send|recv|probe|wait|accept|connect", re.IGNORECASE)


class Stacks(NamedTuple):
    """Where the Python threads of a script are, the innermost call first."""

    text: str
    """All of them, without what differs from rank to rank; empty where nothing is known."""
    first: str = ""
    """The thread that runs the script."""
    others: int = 0
    """How many more there are."""


class WaitingCall(NamedTuple):
    """A call in which a rank waits for others."""

    name: str
    in_library: bool
    """Whether a framework waits, whose own threads may do so too; else the script calls it by itself."""

    @property
    def is_collective(self) -> bool:
        """Whether every rank has to take part."""
        return _OF_TWO.search(self.name) is None


def parse(dump: str, code: str) -> Stacks:
    """What `own_stacks` wrote, less what is the toolkit's or this host's alone; `code` is the code folder."""
    parts = [_without_ours(part.replace(f'File "{code}/', 'File "')) for part in _THREAD.split(dump)]
    first = next((text for text, is_first in parts if text and is_first), "")
    others = [text for text, is_first in parts if text and not is_first]
    return Stacks(_ANOTHER.join([first, *others] if first else others), first, len(others))


def call_in(stack: str, code: str) -> WaitingCall | None:
    """The call in which the thread that runs the script waits for other ranks; None where it is at anything else."""
    frames = list(_FRAME.finditer(stack))
    if not frames:
        return None
    innermost = frames[0]
    if _LIBRARIES.search(innermost["file"]):
        return WaitingCall(innermost["function"], True)
    line = _source(os.path.join(code, innermost["file"]), int(innermost["line"]))
    found = (each for each in _CALL.finditer(line) if _NUMERIC.isdisjoint(each["receiver"].split(".")))
    return next((WaitingCall(each["name"], False) for each in found), None)


def place_of(stack: str) -> str:
    """The innermost call in words, such as `train.py, line 5 in step`; empty where nothing is known."""
    found = _FRAME.search(stack)
    return f"{found['file']}, line {found['line']} in {found['function']}" if found else ""


def says_sleep(stack: str, code: str) -> bool:
    """Whether the innermost line is one that sleeps: not every kernel tells, and an older Python sleeps otherwise."""
    found = _FRAME.search(stack)
    return found is not None and "sleep(" in _source(os.path.join(code, found["file"]), int(found["line"]))


def _without_ours(text: str) -> tuple[str, bool]:
    """A thread, and whether it is the one that runs the script."""
    lines = text.splitlines(keepends=True)
    ours = [number for number, line in enumerate(lines) if any(each in line for each in _OURS)]
    return "".join(lines[: ours[0] if ours else len(lines)]).strip("\n"), bool(ours)


def _source(path: str, number: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line for at, line in enumerate(file, 1) if at == number), "")
    except OSError:
        return ""
