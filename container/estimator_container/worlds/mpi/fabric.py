"""Networks that are faster than TCP, which Open MPI uses only where it may choose."""

from __future__ import annotations

import os

from ...contract.names import FABRIC
from ...runtime import machine

_ACTIVE = "ACTIVE"


def found(sysfs: str = "/sys") -> str | None:
    """The device of this machine that carries messages past TCP, in words; None where there is none.

    InfiniBand, RoCE and EFA have ports (Documentation/ABI/stable/sysfs-class-infiniband of Linux), and Slingshot has
    network interfaces whose names begin with `hsn`.
    """
    for device in _entries(f"{sysfs}/class/infiniband"):
        ports = f"{sysfs}/class/infiniband/{device}/ports"
        for port in _entries(ports):
            if _ACTIVE in machine.kernel_file(f"{ports}/{port}/state"):
                kind = "EFA" if device.startswith("efa") else "InfiniBand"
                return f"port {port} of the {kind} device {device} is active"
    for interface in _entries(f"{sysfs}/class/net"):
        if interface.startswith("hsn") and machine.kernel_file(f"{sysfs}/class/net/{interface}/operstate") != "down\n":
            return f"the Slingshot interface {interface} is there"
    return None


def is_chosen(transport: str | None, one_machine: bool) -> bool:
    """Whether Open MPI is left to choose; hosts on one machine need no network, unless they are told to."""
    if transport is None:
        return not one_machine and found() is not None
    return transport == FABRIC


def sentence(transport: str | None, sysfs: str = "/sys") -> str:
    """What ranks on different machines talk over, and why, as far as this machine shows it."""
    chooses = "Open MPI chooses among UCX, libfabric and TCP"
    if transport is not None:
        return f"{chooses if transport == FABRIC else 'TCP'}, as the job says"
    device = found(sysfs)
    return f"{chooses}: {device}" if device else "TCP: no InfiniBand, EFA or Slingshot is active"


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
