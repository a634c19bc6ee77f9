"""A pool in a network of its own, whose client is cut off for a minute while it follows a job.

    unshare --net python -m tests.ssh.cut_off FOLDER

Packets to and from the servers of ssh are dropped then, and nobody is told; the machines reach each other. The last
line of the output says as JSON what was seen.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from estimator_sdk import Estimator, Job
from tests.ssh.pool import pool
from tests.waiting import SECONDS, wait_for

CUT_SECONDS = 60.0
LINES = 700
COUNTING = f"""
import os, time
for number in range({LINES}):
    print(os.environ["SM_CURRENT_HOST"], number, flush=True)
    time.sleep(0.2)
"""


def main(folder: Path) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (folder / "train.py").write_text(COUNTING)
    with pool() as made:
        os.environ.update(made.environment(), ESTIMATOR_HOME=str(folder / "home"))
        (port,) = set(re.findall(r"Port (\d+)", (made.folder / "config").read_text()))
        job = Estimator(entry_point=str(folder / "train.py"), hosts=made.names, instance_count=2).fit(wait=False)
        print(json.dumps(see(job, port)))


def see(job: Job, port: str) -> dict[str, object]:
    """Follow a job before, during and after the cut."""
    followed: list[tuple[str, int]] = []

    def follow() -> None:
        for line in job.logs(stream="stdout", follow=True):
            host, number = line.data.split()
            followed.append((host.decode(), int(number)))

    following = threading.Thread(target=follow)
    following.start()
    wait_for(lambda: len(followed) > 10)
    drop("-I", port)

    def is_still() -> bool:  # what had left the machine before is shown first
        seen = len(followed)
        time.sleep(2.0)
        return len(followed) == seen

    wait_for(is_still)
    before = len(followed)
    time.sleep(CUT_SECONDS)
    during, status = len(followed) - before, job.status
    drop("-D", port)
    wait_for(lambda: len(followed) > before)
    goes_on = job.status
    following.join(600)
    whole = {host: [number for name, number in followed if name == host] for host in job.hosts}
    expected = list(range(LINES))
    return {
        "lines during the cut": during,
        "status during the cut": status,
        "status at the first line after it": goes_on,
        "whole": [host for host, numbers in whole.items() if numbers == expected],
        "status": job.wait(SECONDS),
    }


def drop(rule: str, port: str) -> None:
    """Begin, or cease, to drop what goes to and comes from that port."""
    for side in ("--dport", "--sport"):
        subprocess.run(["iptables", rule, "INPUT", "-p", "tcp", side, port, "-j", "DROP"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
