"""Ranks that other ranks start while the job runs, by MPI_Comm_spawn.

MPI's daemons start them under the same wrapper as all others: `fork_agent` is what stands before every command that a
daemon starts. So they have all that ranks have: the environment, a log, a verdict, and an end with the job.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Sequence

from ..runtime import private_folder
from . import script_runner, wrapper

MOST_SPAWNED = 4096
"""Ranks that one call can start."""
_PYTHON = re.compile(r"python[\d.]*")
_OPTION = re.compile(r"-[bBdEiIOPqRsSuvx]+|-[WX].+")
_OPTION_WITH_VALUE = ("-W", "-X")
_SPLITS = re.compile(r"\s")
_ASKS = re.compile(rb"MPI_Comm_spawn|\bSpawn(?:_multiple)?\b|mpi4py\.futures|MPIPoolExecutor")
_MOST_BYTES = 1 << 24  # of the code that are looked at


def fork_agent(folder: str, python: str = sys.executable) -> str:
    """What Open MPI is to put before each command that it starts; it splits this at spaces.

    Where the toolkit or its Python has a space in its path, that is a script in `folder`, which must have none.
    """
    words = [python, "-I", "-S", wrapper.__file__, wrapper.BY_MPI]
    if not any(_SPLITS.search(word) for word in words):
        return " ".join(words)
    path = os.path.join(folder, "fork-agent")
    private_folder.write(path, f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    os.chmod(path, stat.S_IRWXU)
    return path


def mapping(path: str, oversubscribes: bool | None) -> dict[str, str]:
    """Parameters with which ranks can start others, on the hosts that the file at `path` names.

    `oversubscribes` is what the user says of more ranks than slots, if anything.

    The other mappers of Open MPI begin with the host of the last rank, and its daemons count from the first one: then
    two ranks have the same number where one `Spawn` takes several hosts (`get_starting_point` of
    rmaps_base_support_fns.c, `generate_ppn` of regx_base_default_fns.c in 4.1).
    """
    # All slots are taken by the ranks, so none is free for those that they start.
    allowed = {"rmaps_base_oversubscribe": "1"} if oversubscribes is None else {}
    return {"rmaps": "seq", "rmaps_base_inherit": "1", "orte_default_hostfile": path, **allowed}


def write_hostfile(folder: str, node_names: Sequence[str]) -> str:
    """Say on which hosts ranks run that others start, as far as those name none; returns the path of the file."""
    path = os.path.join(folder, "hostfile")
    names = itertools.islice(itertools.cycle(node_names), MOST_SPAWNED)
    private_folder.write(path, "".join(f"{name}\n" for name in names))
    return path


def is_asked_for(code: str) -> bool:
    """Whether anything in the folder `code` looks as if it started other ranks: a script, a program, a pickled call."""
    room = _MOST_BYTES
    for folder, _, names in os.walk(code):
        for path in (os.path.join(folder, name) for name in names):
            if room <= 0:
                return False
            if not os.path.isfile(path):
                continue
            data = b""
            with contextlib.suppress(OSError), open(path, "rb") as file:
                data = file.read(room)
            room -= len(data)
            if _ASKS.search(data):
                return True
    return False


def argv(words: Sequence[str], path: str | None = None) -> tuple[str, ...]:
    """The command of a spawned rank: its program from `path`, and a Python script so that it fails as those of ranks.

    >>> argv(["/no/python3", "-u", "-m", "worker"])[-2:]
    ('-m', 'worker')
    >>> argv(["./worker", "--help"])
    ('./worker', '--help')
    """
    words = [shutil.which(words[0], path=path) or words[0], *words[1:]]
    at = 1
    while at < len(words) and (_OPTION.fullmatch(words[at]) or words[at] in _OPTION_WITH_VALUE):
        at += 2 if words[at] in _OPTION_WITH_VALUE else 1
    rest = words[at:]
    runs_script = bool(rest) and (not rest[0].startswith("-") or (rest[0] == "-m" and len(rest) > 1))
    if not _PYTHON.fullmatch(os.path.basename(words[0])) or not runs_script:
        return tuple(words)
    return (*words[:at], script_runner.__file__, *rest)


def folder_here(folder: str, code: str, home: str | None = None) -> str:
    """The working directory of a rank that one with the directory `folder` has spawned, maybe from another host.

    Hosts that are processes each have a copy of the code, below a folder of their own name; `code` is this host's.
    On another machine MPI's daemon may find nothing of the name that the spawning rank's directory has, and says `home`
    in its place (`orte_util_check_context_cwd` in Open MPI 4.1).

    >>> folder_here("/job/algo-1/code/deep", "/job/algo-2/code"), folder_here("/tmp", "/job/algo-2/code")
    ('/job/algo-2/code/deep', '/tmp')
    >>> folder_here("/home/me", "/home/me/jobs/algo-2/code", "/home/me")
    '/home/me/jobs/algo-2/code'
    """
    if home is not None and folder == os.path.realpath(home):
        return code
    own, name = os.path.split(code)
    hosts = os.path.dirname(own)
    host, _, below = os.path.relpath(folder, hosts).partition("/")
    return os.path.join(own, below) if host != ".." and below.partition("/")[0] == name else folder
