"""What the kernel tells of a rank: proc(5)."""

from __future__ import annotations

import contextlib
import os
import re
from typing import NamedTuple

from ...runtime.machine import kernel_file

_TICKS = os.sysconf("SC_CLK_TCK")
_MOVES_BYTES = {  # machine -> numbers of read, write, readv and writev (syscalls(2))
    "x86_64": (0, 1, 19, 20),
    "aarch64": (63, 64, 65, 66),
}
_SLEEP = {"x86_64": (35, 230), "aarch64": (101, 115)}  # nanosleep and clock_nanosleep
_OPENING_A_FIFO = ("fifo_open", "wait_for_partner")  # functions of the kernel, fs/pipe.c


class Use(NamedTuple):
    """What a rank has used so far."""

    written: int
    """Bytes, by all its threads."""
    moved_by_first: int
    """Bytes that its first thread has read and written."""
    cpu: float
    """Seconds, of all its threads."""
    cpu_of_first: float
    """Of its first thread."""
    pauses_of_first: int
    """How often its first thread has waited for anything."""


def use(pid: int) -> Use:
    """What a process has used; nothing where it is gone."""
    first = f"{pid}/task/{pid}"
    of_first = _fields(first, "io")
    moved = of_first.get("wchar", 0) + of_first.get("rchar", 0)
    pauses = _fields(first, "status").get("voluntary_ctxt_switches", 0)
    return Use(_fields(str(pid), "io").get("wchar", 0), moved, cpu_seconds(str(pid)), cpu_seconds(first), pauses)


def cpu_seconds(place: str) -> float:
    """Of a process, or of a thread, `PID/task/TID`; 0 where it is gone."""
    fields = kernel_file(f"/proc/{place}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if len(fields) > 12 else 0.0


def sleeps(pid: int) -> bool:
    """Whether the first thread of a process waits for nothing but time."""
    number, _ = _system_call(f"{pid}/task/{pid}")
    return number in _SLEEP.get(os.uname().machine, ()) or "nanosleep" in kernel_file(f"/proc/{pid}/wchan")


def waits_for_us(pid: int, channels: str) -> bool:
    """Whether a thread of a rank waits to write its output, which its wrapper takes, or for a channel in pipe mode.

    `channels` is the folder of the channels.
    """
    pipes = _pipes_of(_parent(pid))
    return any(_is_ours(f"{pid}/task/{thread}", pid, pipes, channels) for thread in _names(f"/proc/{pid}/task"))


def _is_ours(place: str, pid: int, pipes: set[str], channels: str) -> bool:
    waits_in = kernel_file(f"/proc/{place}/wchan")
    if any(name in waits_in for name in _OPENING_A_FIFO):
        return os.path.isdir(channels) and _has_fifos(channels)
    number, fd = _system_call(place)
    if number not in _MOVES_BYTES.get(os.uname().machine, ()):
        return False
    target = _link(f"/proc/{pid}/fd/{fd}")
    return target in pipes or target.startswith(os.path.join(channels, ""))


def _has_fifos(channels: str) -> bool:
    import stat

    for name in _names(channels):
        with contextlib.suppress(OSError):  # a link to nowhere, or it is gone
            if stat.S_ISFIFO(os.stat(os.path.join(channels, name)).st_mode):
                return True
    return False


def catches(pid: int, signum: int) -> bool:
    """Whether a process has a handler for a signal; `SigCgt` of its status, bit 0 for signal 1."""
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)", kernel_file(f"/proc/{pid}/status"), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signum - 1) & 1)


def has_open(pid: int, path: str) -> bool:
    """Whether a process has that file open; a script may have closed what it has not opened."""
    place = os.path.realpath(path)
    return any(_link(f"/proc/{pid}/fd/{name}") == place for name in _names(f"/proc/{pid}/fd"))


def summary(pid: int) -> dict[str, object]:
    """The evidence of a report: the state of the first thread, in which function of the kernel it waits, and more."""
    state = kernel_file(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1]
    links = [_link(f"/proc/{pid}/fd/{name}") for name in _names(f"/proc/{pid}/fd")]
    return {
        "state": state[0] if state else "gone",
        "wchan": kernel_file(f"/proc/{pid}/wchan").strip("\0\n"),
        "threads": len(_names(f"/proc/{pid}/task")),
        "sockets": sum(link.startswith("socket:") for link in links),
    }


def _system_call(place: str) -> tuple[int, int]:
    """The number of the call in which a thread waits, and its first argument; (-1, -1) where it runs or none tells."""
    words = kernel_file(f"/proc/{place}/syscall").split()
    return (int(words[0]), int(words[1], 16)) if len(words) > 1 and words[0].isdigit() else (-1, -1)


def _parent(pid: int) -> int:
    fields = kernel_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _pipes_of(pid: int) -> set[str]:
    links = {_link(f"/proc/{pid}/fd/{name}") for name in _names(f"/proc/{pid}/fd")}
    return {link for link in links if link.startswith("pipe:")}


def _fields(place: str, name: str) -> dict[str, int]:
    """The lines `name: number` of a file; others are left out."""
    lines = (line.partition(":") for line in kernel_file(f"/proc/{place}/{name}").splitlines())
    return {key: int(value) for key, _, value in lines if value.strip().isdigit()}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return ""
