"""What runs on each of two nodes, with nothing but the standard library: `python -I -S on_node.py FOLDER TOKEN`.

The first opens a port, the second connects to it, and each leaves what it found in a file of the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

DOOR_SECONDS = 30.0
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.1


def main(folder: Path, token: str) -> None:
    """Find out what this node has, and report it in a file that appears at once."""
    number, node = os.environ["SLURM_PROCID"], os.environ["SLURMD_NODENAME"]
    beside = Path(sys.executable).with_name("mpirun")
    found = {
        "node": node,
        "python": ".".join(map(str, sys.version_info[:3])),
        "sees": _read(folder / "token") == token,
        "mpirun": str(beside) if os.access(beside, os.X_OK) else shutil.which("mpirun"),
    }
    if number == "0":
        found.update(_let_in(folder, node))
    else:
        found.update(_connect(folder))
    found["now"] = time.time()
    report = folder / f"report-{number}"
    unfinished = folder / f".{report.name}"
    unfinished.write_text(json.dumps(found), encoding="utf-8")
    unfinished.rename(report)


def _let_in(folder: Path, node: str) -> dict[str, object]:
    """Tell the other one the time."""
    with socket.create_server((_address(node), 0)) as server:
        server.settimeout(DOOR_SECONDS + CONNECT_SECONDS)
        (folder / ".door").write_text(json.dumps(server.getsockname()), encoding="utf-8")
        (folder / ".door").rename(folder / "door")
        try:
            with server.accept()[0] as connection:
                connection.sendall(repr(time.time()).encode())
        except OSError as error:
            return {"port": str(error)}
    return {"port": ""}


def _connect(folder: Path) -> dict[str, object]:
    until = time.monotonic() + DOOR_SECONDS
    while not (door := _read(folder / "door")):
        if time.monotonic() > until:
            return {"port": f"nothing of the other node was seen for {DOOR_SECONDS:g} s"}
        time.sleep(LOOK_SECONDS)  # a network file system tells nobody of changes
    try:
        with socket.create_connection(tuple(json.loads(door)), timeout=CONNECT_SECONDS) as connection:
            there = float(connection.makefile().read())
    except (OSError, ValueError) as error:
        return {"port": str(error) or type(error).__name__}
    return {"port": "", "apart": time.time() - there}


def _address(node: str) -> str:
    """The address by which Slurm knows the node, which hosts of jobs use."""
    said = subprocess.run(["scontrol", "--oneliner", "show", "node", node], capture_output=True, text=True, check=True)
    (address,) = (word.partition("=")[2] for word in said.stdout.split() if word.startswith("NodeAddr="))
    return socket.gethostbyname(address)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
