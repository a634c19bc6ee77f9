"""What a machine of a pool says of itself."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_container.runtime import machine

from ....values.home import cache_folder, home, make_folder
from ..session.boot import place_of

HOSTS = "hosts"
"""Of the user's home for jobs, the folder that keepers have theirs in."""
CODE = "code"
"""Of the user's cache, the folder of the bundles of code."""
REACH_SECONDS = 3.0
"""That another machine may take to be reached."""
_ANSWER_SECONDS = 20.0  # that a program may take to say its version


def address_of_this_machine() -> str:
    """The IPv4 address by which other machines reach this one: that at which ssh has been answered."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) == 4 and ":" not in words[2]:
        return words[2]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of RFC 5737: nothing is sent, but a route is chosen
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


def facts_of_this_machine() -> dict[str, Any]:
    """What `estimator pool check` shows, as JSON values."""
    free = shutil.disk_usage(_existing(cache_folder())).free
    address = address_of_this_machine()
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "mpi": _version("mpirun"),
        "time": time.time(),
        "cpus": machine.cpus(),
        "memory": machine.memory_bytes(),
        "gpus": machine.gpus(),
        "disk": free,
        "ports": _free_ports(),
        "address": address,
        "interface": machine.interface_for(address, ""),
        "name": machine.name(),
    }


def boot() -> str:
    """What tells this machine, since it was started last, from all others; empty where the kernel does not say."""
    return machine.kernel_file("/proc/sys/kernel/random/boot_id").strip()


def own_home() -> str:
    """Where this machine has the user's jobs, and what tells that folder from those of machines that do not share it.

    Raises EstimatorError and OSError.
    """
    folder = home()
    make_folder(folder)
    return f"{place_of(str(folder))} {folder}"


def refused_by(places: Sequence[tuple[str, int]]) -> list[str]:
    """For each place why nothing there can be connected to, empty where it can; all are tried at once."""
    from concurrent.futures import ThreadPoolExecutor  # most who load this module try nothing

    def why_not(place: tuple[str, int]) -> str:
        try:
            with socket.create_connection(place, REACH_SECONDS):
                return ""
        except OSError as error:
            return error.strerror or str(error)

    with ThreadPoolExecutor(max(1, len(places))) as threads:
        return list(threads.map(why_not, places))


def _free_ports() -> int:
    """How many the kernel can still give to connections and to servers that ask for any."""
    low, high = map(int, machine.kernel_file("/proc/sys/net/ipv4/ip_local_port_range").split() or (32768, 60999))
    lines = [line.split() for name in ("tcp", "tcp6") for line in machine.kernel_file(f"/proc/net/{name}").splitlines()]
    used = {int(line[1].rpartition(":")[2], 16) for line in lines if len(line) > 1 and ":" in line[1]}
    return high - low + 1 - sum(low <= port <= high for port in used)


def _version(program: str) -> str:
    import subprocess  # a keeper asks for no version

    if shutil.which(program) is None:
        return ""
    try:
        command = [program, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0].rpartition(" ")[2]


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
