"""The GPUs of this machine, as nvidia-smi tells them: a second opinion beside what the toolkit reads."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gpu:
    """One that is listed."""

    number: int
    name: str
    uuid: str
    address: str
    """On the PCI bus, as the kernel writes it."""
    driver: str

    @property
    def near_cpus(self) -> str:
        """The list of CPUs of its NUMA node, as the kernel writes it; empty where it is not known of which it is."""
        node = (Path("/sys/bus/pci/devices") / self.address / "numa_node").read_text().strip()
        path = Path(f"/sys/devices/system/node/node{node}/cpulist")
        return path.read_text().strip() if path.exists() else ""


def gpus() -> list[Gpu]:
    """Those of this machine; empty where there is none, or no driver."""
    if shutil.which("nvidia-smi") is None:
        return []
    rows = asked("index,name,uuid,pci.bus_id,driver_version")
    return [Gpu(int(row[0]), row[1], row[2], row[3][-12:].lower(), row[4]) for row in rows if len(row) == 5]


def asked(what: str) -> list[list[str]]:
    """What nvidia-smi answers, a row for each GPU, without units."""
    words = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return [line.split(", ") for line in done.stdout.splitlines()] if done.returncode == 0 else []
