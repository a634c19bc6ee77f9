"""Which NVIDIA GPUs a process may use, by names that stay the same whatever else it can see.

They are the UUIDs that `nvidia-smi -L` lists and `CUDA_VISIBLE_DEVICES` takes ("GPU Isolation", CUDA C++ Programming
Guide): those of GPUs, and of the MIG devices of a GPU that is divided ("Device Enumeration", MIG User Guide).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from ..runtime import machine

VISIBLE = "CUDA_VISIBLE_DEVICES"
MIG = "MIG-"
_GPU_LINE = re.compile(r"GPU \d+: .*\(UUID: (GPU-[^)\s]+)\)")
_SAYS_NO_CUDA = {
    "tensorflow": ("python/platform/build_info.py", r"'is_cuda_build'\W+False\b"),
    "torch": ("version.py", r"^cuda\b.*= *None\b"),
}
"""Framework -> a file of its package, and a pattern of what that says in a build without CUDA."""
_MIG_LINE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)\s]+)\)")


def take(number: int, shares: int) -> None:
    """Leave to this process, and to what it starts, one of so many shares of the GPUs that it sees."""
    if shares == 1 and VISIBLE not in os.environ:
        return
    seen = visible(os.environ)
    taken = share(seen, number, shares)
    if seen:
        os.environ[VISIBLE] = ",".join(taken)
    machine.count_gpus_as(len(taken))


def visible(variables: Mapping[str, str]) -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` calls the GPUs that a process with these variables sees."""
    if VISIBLE in variables:
        return chosen(variables[VISIBLE])
    return of_this_machine() or [str(each) for each in range(machine.gpus())]


def exist() -> bool:
    """Whether there is any, whatever a process may see of them."""
    return machine.gpus() > 0 or of_this_machine() != []


def build_without_cuda(framework: str) -> str:
    """The file that says that this Python's build of a framework has no CUDA; empty where it has, or is not there.

    Nothing of the framework is imported.
    """
    from importlib.util import find_spec

    file, pattern = _SAYS_NO_CUDA.get(framework, ("", ""))
    spec = find_spec(framework) if file else None
    if spec is None or spec.origin is None:
        return ""
    path = os.path.join(os.path.dirname(spec.origin), file)
    return path if re.search(pattern, machine.kernel_file(path), re.MULTILINE) else ""


def listed(listing: str) -> list[str]:
    """The UUIDs in the output of `nvidia-smi -L`; of a GPU that is divided, those of its parts instead of its own.

    >>> listed("GPU 0: A100 (UUID: GPU-a)\\n  MIG 1g.5gb Device 0: (UUID: MIG-b)\\nGPU 1: A100 (UUID: GPU-c)")
    ['MIG-b', 'GPU-c']
    """
    return [name for gpu, *parts in _gpus_and_parts(listing) for name in parts or [gpu]]


def chosen(value: str) -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` names: all up to the first that is none, as CUDA reads it.

    >>> chosen("0, GPU-a,-1,2"), chosen(""), chosen("NoDevFiles")
    (['0', 'GPU-a'], [], [])
    """
    found = []
    for name in value.split(","):
        if not re.fullmatch(r"\d+|GPU-.+|MIG-.+", name.strip()):
            break
        found.append(name.strip())
    return found


def share(names: Sequence[str], number: int, shares: int) -> Sequence[str]:
    """One of so many shares, from 0; they differ by at most one GPU.

    >>> share("abcde", 0, 2), share("abcde", 1, 2)
    ('ab', 'cde')
    """
    return names[len(names) * number // shares : len(names) * (number + 1) // shares]


def of_this_machine() -> list[str]:
    """The UUIDs of this machine's GPUs; none where nobody lists them."""
    return listed(_nvidia_smi("-L"))


def near_cpus(devices: str = "/sys/bus/pci/devices") -> dict[str, frozenset[int]]:
    """What a GPU, or a MIG device, is called by UUID and by number -> the CPUs that are near it, by PCI and NUMA.

    Source: `local_cpulist`, Documentation/ABI/testing/sysfs-bus-pci of the kernel.
    """
    found: dict[str, frozenset[int]] = {}
    for row in _nvidia_smi("--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader").splitlines():
        number, uuid, address = (*row.split(", "), "", "")[:3]
        # Its domain has eight digits, that of the kernel four.
        near = _cpus(machine.kernel_file(f"{devices}/{address[-12:].lower()}/local_cpulist"))
        found.update({number: near, uuid: near})
    for gpu, *parts in _gpus_and_parts(_nvidia_smi("-L")):
        found.update(dict.fromkeys(parts, found.get(gpu, frozenset())))
    return found


def _cpus(text: str) -> frozenset[int]:
    """The CPUs of a list of the kernel.

    >>> sorted(_cpus("0-2,8\\n"))
    [0, 1, 2, 8]
    """
    pairs = (each.partition("-") for each in text.strip().split(",") if each)
    return frozenset(cpu for first, _, last in pairs for cpu in range(int(first), int(last or first) + 1))


def _gpus_and_parts(listing: str) -> list[list[str]]:
    """The UUID of each GPU, followed by those of its parts."""
    found: list[list[str]] = []
    for line in listing.splitlines():
        gpu, part = _GPU_LINE.match(line), _MIG_LINE.match(line)
        if gpu:
            found.append([gpu[1]])
        elif part and found:
            found[-1].append(part[1])
    return found


def _nvidia_smi(*options: str) -> str:
    """What the driver's program prints; empty where there is none, or it does not answer."""
    import shutil
    import subprocess

    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *options], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
