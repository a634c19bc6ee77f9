"""What this host has: CPUs that it may use, accelerators, network interfaces."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import struct

_SIOCGIFADDR = 0x8915  # linux/sockios.h
_taken: list[int] = []
_LOCAL = {"aufs", "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs"}
_LOCAL |= {"tmpfs", "vfat", "xfs", "zfs"}
_OCTAL = re.compile(r"\\([0-7]{3})")  # as a blank is written in the path of a mount
_NVIDIA_DEVICE = re.compile(r"nvidia\d+")


def cpus() -> int:
    """How many CPUs this process may use: its affinity, cut by the quota of its cgroup."""
    allowed = len(os.sched_getaffinity(0))
    quota = cgroup_quota()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def cgroup_quota() -> float | None:
    """CPUs granted by cgroup v2, then v1; None without a limit."""
    v1 = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"
    try:
        quota, period = map(int, kernel_file("/sys/fs/cgroup/cpu.max").split() or map(kernel_file, v1))
    except ValueError:  # `max`, or nothing
        return None
    return quota / period if quota > 0 else None


def kernel_file(path: str) -> str:
    """A file of the kernel; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def may_hang(path: str) -> bool:
    """Whether a file is on a file system that answers only as long as a network, or another program, does.

    By the type of the mount that it is below (`/proc/self/mountinfo`, Documentation/filesystems/proc.rst, 3.5): any
    that is not known to be local. A place of which nothing is known counts as local.
    """
    path, longest, may_hang = os.path.realpath(path), 0, False
    for mount in filter(None, kernel_file("/proc/self/mountinfo").split("\n")):
        about, _, kind = mount.partition(" - ")
        place = _OCTAL.sub(lambda found: chr(int(found[1], 8)), about.split(" ")[4])
        # The last one at a place is over those before.
        if len(place) >= longest and os.path.commonpath((place, path)) == place:
            longest, may_hang = len(place), kind.partition(" ")[0] not in _LOCAL
    return may_hang


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def out_of_memory_kills() -> int:
    """How often the kernel has ended a process of this host for want of memory.

    Counted by the host's cgroup, v2 then v1 ("Memory Interface Files", "Memory Resource Controller" of the kernel's
    documentation); 0 where that is not shown.
    """
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        counts = dict(line.partition(" ")[::2] for line in kernel_file(path).splitlines())
        if "oom_kill" in counts:
            return int(counts["oom_kill"])
    return 0


def count_gpus_as(number: int) -> None:
    """This host has so many from now on: its share."""
    _taken.append(number)


def gpus() -> int:
    """How many NVIDIA GPUs this host has, by their device files, or by the share of them that it has taken."""
    if _taken:
        return _taken[-1]
    try:
        return sum(1 for name in os.listdir("/dev") if _NVIDIA_DEVICE.fullmatch(name))
    except OSError:
        return 0


def neurons() -> int:
    """How many Neuron cores this host has, as `neuron-ls` counts them."""
    if not os.path.exists("/dev/neuron0") or shutil.which("neuron-ls") is None:
        return 0
    import subprocess

    listed = subprocess.run(["neuron-ls", "-j"], capture_output=True, text=True, check=False)
    try:
        return sum(int(device["nc_count"]) for device in json.loads(listed.stdout))
    except (ValueError, KeyError, TypeError):
        return 0


def interface_for(address: str, preferred: str) -> str:
    """The network interface that MPI should use: the one that owns `address`, else `preferred`."""
    if address.startswith("127."):
        return "lo"
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return preferred


def gateway() -> str:
    """The IPv4 address of the default gateway; empty where there is none.

    `/proc/net/route` has addresses as hexadecimal numbers in the machine's byte order, and bit 2 of the flags for a
    gateway (net/ipv4/fib_trie.c and RTF_GATEWAY in linux/route.h).
    """
    for _, destination, address, flags, *_ in map(str.split, kernel_file("/proc/net/route").splitlines()[1:]):
        if int(destination, 16) == 0 and int(flags, 16) & 2:
            return socket.inet_ntoa(struct.pack("=I", int(address, 16)))
    return ""


def name() -> str:
    """This machine's name without its domain, as Open MPI takes it."""
    return socket.gethostname().split(".")[0]


def ranks_may_read_each_other() -> bool:
    """Whether one process of a user may copy memory out of another that is not its child.

    Yama (Documentation/admin-guide/LSM/Yama.rst) forbids it from scope 1 on; a seccomp filter, as
    containers have, may forbid it too, and does not say so.
    """
    if kernel_file("/proc/sys/kernel/yama/ptrace_scope").strip() not in ("", "0"):
        return False
    status = kernel_file("/proc/self/status")
    return status != "" and "Seccomp:\t2\n" not in status
