"""Take memory in the cgroup of a process until the kernel ends that process for want of it: `hoarder.py PID`."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
STEP = 1 << 20


def memory_cgroup(pid: str) -> Path:
    """The cgroup that limits the memory of a process, of either version."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/")
        if number == "0" and not controllers and (ROOT / "cgroup.controllers").exists():
            return ROOT / path.lstrip("/")
    raise FileNotFoundError(f"process {pid} has no memory cgroup")


def kills(cgroup: Path) -> int:
    """How many processes the kernel has killed there for want of memory."""
    for name in ("memory.oom_control", "memory.events"):
        if (cgroup / name).exists():
            fields = dict(line.split() for line in (cgroup / name).read_text().splitlines())
            return int(fields["oom_kill"])
    raise FileNotFoundError(f"{cgroup} does not count its kills")


def main(pid: str) -> None:
    cgroup = memory_cgroup(pid)
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000")  # the kernel takes it first, and not this process
    before = kills(cgroup)
    (cgroup / "cgroup.procs").write_text("0")
    kept = []
    while kills(cgroup) == before:
        kept.append(mmap.mmap(-1, STEP))
        kept[-1].write(b"x" * STEP)


if __name__ == "__main__":
    main(sys.argv[1])
